/usr/bin/python3 - <<'P'
import os
for d in range(120):
    os.makedirs("tree/d%d" % d)
    for f in range(100):
        with open("tree/d%d/f%d" % (d, f), "wb") as out: out.write(b"%d the quick brown fox\n" % f * (100 + (d * 37 + f * 91) % 300))
P
