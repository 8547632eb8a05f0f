awk 'BEGIN { for (n = 0; n < 300000; n++) printf "%-47s%16d\n", "customer " n, n * 7 }' > customers.dat
