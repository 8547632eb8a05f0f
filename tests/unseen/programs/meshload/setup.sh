/usr/bin/python3 -c '
import random, struct
r = random.Random(6)
n = 8000
with open("model.mesh", "wb") as f:
    f.write(struct.pack(">i", n))
    for i in range(n): f.write(struct.pack(">9f", *[r.random() for _ in range(9)]))'
