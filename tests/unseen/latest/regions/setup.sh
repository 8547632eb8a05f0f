seq 1 2500000 | awk '{ print "region" ($1 % 37) "," $1 % 1000 "," $1 }' > sales.csv
