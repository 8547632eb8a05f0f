exec /usr/bin/python3 - <<'P'
import random
random.seed(1)
genome = "".join(random.choices("ACGT", k=1500000))
with open("genome.fa", "w") as out:
    out.write(">chr1\n" + "\n".join(genome[i : i + 60] for i in range(0, len(genome), 60)) + "\n")
with open("reads.fq", "w") as out:
    for n in range(40000):
        at = random.randrange(len(genome) - 100)
        out.write("@r%d\n%s\n+\n%s\n" % (n, genome[at : at + 100], "I" * 100))
P
