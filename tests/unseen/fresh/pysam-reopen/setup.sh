/usr/bin/python3 - <<'P'
import random, pysam
r = random.Random(1)
with open("genome.fa", "w") as f:
    for c in range(400):
        f.write(f">contig{c}\n")
        for _ in range(400):
            f.write("".join(r.choices("ACGT", k=60)) + "\n")
with open("regions.bed", "w") as f:
    for n in range(12000):
        at = r.randrange(23000)
        f.write(f"contig{r.randrange(400)}\t{at}\t{at + 200}\n")
pysam.faidx("genome.fa")
P
