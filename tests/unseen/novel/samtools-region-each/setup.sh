/usr/bin/python3 - <<'P'
import random
random.seed(1)
with open("reads.sam", "w") as out:
    for c in range(60):
        out.write("@SQ\tSN:contig%d\tLN:5000000\n" % c)
    for c in range(60):
        for pos in sorted(random.randrange(1, 4900000) for _ in range(4000)):
            s = "".join(random.choices("ACGT", k=100))
            out.write("r\t0\tcontig%d\t%d\t60\t100M\t*\t0\t0\t%s\t%s\n" % (c, pos, s, "I" * 100))
with open("targets.bed", "w") as out:
    for n in range(500):
        start = random.randrange(4800000)
        out.write("contig%d\t%d\t%d\n" % (n % 60, start, start + 5000))
P
samtools view -b -o reads.bam reads.sam && samtools index reads.bam && rm reads.sam
