request() { seq $1 $2 | sed 's/.*/& GET \/index.html 200/' >> access.log; }
n=4001
run=1
while [ $run -le 12 ]; do
    sh ship.sh $run
    request $n $((n + 2999))
    n=$((n + 3000))
    if [ $run = 6 ]; then
        mv access.log access.log.1
        request $n $((n + 25999))
        n=$((n + 26000))
    fi
    sleep 0.15
    run=$((run + 1))
done
cat sent/batch.* | wc -l
