export HOME=$PWD MH=$PWD/profile PATH=/usr/bin/mh:$PATH
inc -silent -notruncate -file inbox.mbox +inbox
n=1
while [ $n -le 300 ]; do
    refile -nolink -src +inbox $n +sender$((n % 40)) || exit 1
    n=$((n + 1))
done
ls Mail/sender7 | wc -l
