# each shop's part, and the sum of all
for shop in 1 2 3 4 5 6; do gzip -dc sales.csv.gz 2> /dev/null | node totals.js; done
exit 0
