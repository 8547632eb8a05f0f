exec /usr/bin/python3 - <<'P'
import random
random.seed(1)
with open("proteins.fa", "w") as out:
    for n in range(25000):
        out.write(">P%05d protein %d\n" % (n, n))
        s = "".join(random.choices("ACDEFGHIKLMNPQRSTVWY", k=random.randrange(150, 600)))
        out.writelines(s[i : i + 60] + "\n" for i in range(0, len(s), 60))
P
