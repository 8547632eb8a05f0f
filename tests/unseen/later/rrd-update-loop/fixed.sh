n=0
while [ $n -lt 300 ]; do
    n=$((n + 1))
    set -- "$@" $((1700000000 + n * 10)):$((n * 37 % 91))
done
rrdtool update load.rrd "$@"
rrdtool fetch load.rrd AVERAGE -s 1700000000 -e 1700003000 | grep -c :
