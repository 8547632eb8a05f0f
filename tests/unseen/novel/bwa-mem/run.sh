bwa index genome.fa 2> index.log || exit 1
bwa mem genome.fa reads.fq 2> mem.log | samtools sort -o reads.bam - || exit 1
samtools index reads.bam && samtools view -c reads.bam
