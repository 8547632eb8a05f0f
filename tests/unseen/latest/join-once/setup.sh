seq 1 900000 | awk '{ printf "%07d;article of the catalog number %d;%d.%02d\n", ($1 * 7919) % 900001, $1, $1 % 90, $1 % 100 }' > catalog.csv
seq 3 11003 700000 > wanted
