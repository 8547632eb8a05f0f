awk 'BEGIN { split("info warn error debug", l, " "); for (n = 0; n < 30000; n++) printf "2024-05-%02d web%d %s request %d took %d ms\n", n % 30 + 1, n % 4, l[n * 7 % 4 + 1], n, n % 90 }' > app.log
