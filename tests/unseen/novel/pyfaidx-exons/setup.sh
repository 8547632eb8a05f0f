exec /usr/bin/python3 - <<'P'
import random
random.seed(1)
with open("genome.fa", "w") as out:
    for c in range(8):
        out.write(">chr%d\n" % c)
        out.writelines("".join(random.choices("ACGT", k=60)) + "\n" for _ in range(60000))
P
