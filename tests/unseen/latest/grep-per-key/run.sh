while read -r key; do
    grep "^$(printf %07d "$key");" catalog.csv
done < wanted > prices.csv
wc -l < prices.csv
