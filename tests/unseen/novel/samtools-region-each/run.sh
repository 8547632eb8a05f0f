# reads in each target
while read -r contig start end; do
  samtools view -c reads.bam "$contig:$start-$end" || exit 1
done < targets.bed > counts
awk '{ n += $1 } END { print n }' counts
