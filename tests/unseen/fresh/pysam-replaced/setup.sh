/usr/bin/python3 - <<'P'
import random, pysam
for name, seed in (("genome.fa", 1), ("next.fa", 2)):
    r = random.Random(seed)
    with open(name, "w") as f:
        for c in range(300):
            f.write(f">contig{c}\n")
            for _ in range(600):
                f.write("".join(r.choices("ACGT", k=60)) + "\n")
    pysam.faidx(name)
P
