pigz -p 2 -3 -k dump.csv && pigz -t dump.csv.gz
