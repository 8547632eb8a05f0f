head -c 50000000 /dev/urandom > v1.img
{ head -c 9000000 v1.img; head -c 300000 /dev/urandom; tail -c +9500000 v1.img; } > v2.img
