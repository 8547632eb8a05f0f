samtools view -c -M -L targets.bed reads.bam
