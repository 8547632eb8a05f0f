seq 1 1200000 | awk '{ printf "chr%d\t%d\t%d\tgene%d\n", 1 + int(($1 - 1) / 600000), $1 % 600000 * 50 + 1, $1 % 600000 * 50 + 40, $1 }' | sort -k1,1 -k2,2n > genes.bed
seq 1 1200000 | awk '{ printf "chr%d\t%d\t%d\tread%d\n", 1 + $1 % 2, $1 * 7919 % 29999999, $1 * 7919 % 29999999 + 90, $1 }' > reads.bed
