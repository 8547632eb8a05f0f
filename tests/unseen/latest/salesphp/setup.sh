seq 1 3000000 | awk '{ print "customer" ($1 % 50000) ";" $1 % 977 ";EUR" }' > sales.csv
