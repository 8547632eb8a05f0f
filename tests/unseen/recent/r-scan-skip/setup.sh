awk 'BEGIN { for (n = 1; n <= 60000; n++) printf "%d %.4f %.4f %.4f station%d\n", n, n * 0.37 % 91, n * 1.73 % 17, n * 0.11 % 7, n % 40 }' > series.txt
