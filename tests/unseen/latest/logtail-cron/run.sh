request() { seq $1 $2 | sed 's/.*/& GET \/index.html 200/' >> access.log; }
n=200001
run=1
while [ $run -le 10 ]; do
    logtail -f access.log -o access.offset > sent/batch.$run
    request $n $((n + 99999))
    n=$((n + 100000))
    if [ $run = 5 ]; then
        logtail -f access.log -o access.offset > sent/batch.last
        mv access.log access.log.1
        request $n $((n + 149999))
        n=$((n + 150000))
    fi
    sleep 0.1
    run=$((run + 1))
done
logtail -f access.log -o access.offset > sent/batch.end
cat sent/batch.* | wc -l
