mkdir scans
for n in $(seq 40); do head -c 700000 /dev/urandom | base64 > scans/s$n.txt; done
