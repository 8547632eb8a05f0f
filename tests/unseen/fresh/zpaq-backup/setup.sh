/usr/bin/python3 - <<'P'
import os, random
r = random.Random(8)
os.mkdir("projects")
for n in range(40):
    with open(f"projects/plan{n}", "w") as f:
        for _ in range(12000):
            f.write(" ".join("word%d" % r.randrange(900) for _ in range(8)) + "\n")
P
