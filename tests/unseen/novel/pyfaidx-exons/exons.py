# the length and composition of all exons, gene after gene
import random
from pyfaidx import Fasta

random.seed(2)
genome = Fasta("genome.fa", as_raw=True)
gc = total = 0
for gene in range(4000):
    start = random.randrange(3500000)
    for exon in range(6):
        s = genome["chr%d" % (gene % 8)][start + exon * 900 : start + exon * 900 + 150]
        gc += s.count("G") + s.count("C")
        total += len(s)
print(total, gc)
