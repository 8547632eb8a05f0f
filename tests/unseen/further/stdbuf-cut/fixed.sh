cut -d, -f1,3,5 orders.csv > short.csv
