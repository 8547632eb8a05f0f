mkfifo questions
/usr/bin/python3 serve.py < questions > answers & P=$!
exec 3> questions
ask() { seq 1 2000 | awk '{ print "contig" $1 * 7 % 300, $1 * 17, $1 * 17 + 100 }' >&3; }
answered() { until [ $(wc -l < answers) -ge $1 ]; do sleep 0.1; done; }
ask
answered 2000
# the nightly update puts the new release into place
sync next.fa next.fa.fai
mv next.fa genome.fa
mv next.fa.fai genome.fa.fai
sync .
ask
answered 4000
ask
exec 3>&-
wait $P
wc -l answers
