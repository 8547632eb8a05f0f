awk 'BEGIN { for (n = 0; n < 600000; n++) printf "article %07d %7d        \n", n % 10000000, n * 7 % 100000 }' > prices.tbl
