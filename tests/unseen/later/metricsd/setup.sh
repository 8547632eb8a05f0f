head -c 67108864 /dev/zero > series.dat
