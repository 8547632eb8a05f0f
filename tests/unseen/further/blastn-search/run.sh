makeblastdb -in genome.fa -dbtype nucl -out genome > /dev/null || exit 1
blastn -db genome -query queries.fa -outfmt 6 -evalue 1e-9 > hits || exit 1
wc -l < hits
