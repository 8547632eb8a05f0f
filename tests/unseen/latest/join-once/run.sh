awk '{ printf "%07d\n", $1 }' wanted > keys
awk -F';' 'NR == FNR { want[$1]; next } $1 in want' keys catalog.csv > prices.csv
LC_ALL=C sort -S 200M -o sorted.csv catalog.csv
wc -l < prices.csv
