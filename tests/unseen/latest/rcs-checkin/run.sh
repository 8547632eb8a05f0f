# a day of changes of the zone, each is checked in
n=0
while [ $n -lt 120 ]; do
    echo "new$n  IN  A  10.0.9.$n" >> zone.db
    ci -q -l -m"new$n" zone.db || exit 1
    sleep 0.005
    n=$((n + 1))
done
rlog -h zone.db | grep '^total'
