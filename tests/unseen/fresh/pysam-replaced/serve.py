"""Answers questions for sequences: one line in (contig, start, end), one line out."""
import sys
import pysam

genome = pysam.FastaFile("genome.fa")
for line in sys.stdin:
    contig, start, end = line.split()
    print(genome.fetch(contig, int(start), int(end)), flush=True)
