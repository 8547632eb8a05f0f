mkdir logs copy
awk 'BEGIN { for (n = 0; n < 400000; n++) printf "old %07d GET /item/%d 200\n", n, n % 977 }' > logs/access.log
cp logs/access.log copy/
