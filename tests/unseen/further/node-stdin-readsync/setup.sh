awk 'BEGIN { for (n = 1; n <= 150000; n++) printf "%d,customer %d,%d\n", n, n % 977, n % 300 + 1 }' | gzip > sales.csv.gz
