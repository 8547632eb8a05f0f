head -c 32M /dev/zero > counters.dat
