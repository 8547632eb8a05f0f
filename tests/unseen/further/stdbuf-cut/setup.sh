awk 'BEGIN { for (n = 0; n < 120000; n++) printf "%d,customer %d,%d.%02d,open,2024-%02d-%02d\n", n, n % 900, n % 300, n % 100, n % 12 + 1, n % 28 + 1 }' > orders.csv
