awk 'BEGIN { for (n = 0; n < 3000000; n++) printf "%d,customer %d,%d,2024-%02d-%02d\n", n, n * 7919 % 100003, n * 31 % 977, n % 12 + 1, n % 28 + 1 }' > dump.csv
