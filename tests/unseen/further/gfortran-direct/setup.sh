head -c 38400064 /dev/zero > stations.dat
