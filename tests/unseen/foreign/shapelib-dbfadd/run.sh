n=1
while [ $n -le 2000 ]; do
    dbfadd wells.dbf "well $n" $((n * 7919 % 90)).5 $((n % 100)) || exit 1
    n=$((n + 1))
done
dbfinfo wells.dbf | tail -n 4
