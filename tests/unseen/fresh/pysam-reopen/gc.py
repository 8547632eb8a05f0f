"""Share of G and C in each region."""
import pysam


def sequence(contig, start, end):
    with pysam.FastaFile("genome.fa") as genome:
        return genome.fetch(contig, start, end)


total = n = 0
for line in open("regions.bed"):
    contig, start, end = line.split()
    s = sequence(contig, int(start), int(end))
    total += (s.count("G") + s.count("C")) / len(s)
    n += 1
print(n, "regions", round(total / n, 4))
