sort -k1,1 -k2,2n reads.bed > reads.sorted.bed
bedtools intersect -sorted -c -a genes.bed -b reads.sorted.bed > counts.bed
wc -l counts.bed
