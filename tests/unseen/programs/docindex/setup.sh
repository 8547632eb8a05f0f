/usr/bin/python3 - <<'P'
import os, random
r = random.Random(8)
os.makedirs("docs", exist_ok=True)
words = ["w%x" % r.randrange(1 << 24) for _ in range(4000)]
for i in range(2400):
    t = ("DRAFT " if i % 3 == 0 else "") + " ".join(r.choices(words, k=5000))
    open("docs/d%05d.txt" % i, "w").write(t)
P
