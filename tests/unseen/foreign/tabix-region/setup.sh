seq 1 300000 | awk '{ printf "chr%d\t%d\t%d\tgene%d\t%d\t+\n", 1 + int(($1 - 1) / 100000), $1 % 100000 * 50 + 1, $1 % 100000 * 50 + 40, $1, $1 * 7919 % 1000 }' | sort -k1,1 -k2,2n | bgzip > genes.bed.gz
tabix -p bed genes.bed.gz
seq 1 1500 | awk '{ print "chr" 1 + $1 % 3 ":" $1 * 7919 % 4000000 + 1 "-" $1 * 7919 % 4000000 + 3000 }' > regions
