/usr/bin/python3 - <<'P'
import random, struct
r = random.Random(9)
at, table, outlines = 20000 * 16, [], []
for n in range(20000):
    size = r.randrange(60, 256)
    table.append(struct.pack("<IIII", at, size, n % 900, 0))
    outlines.append(r.randbytes(size))
    at += size
open("face.fnt", "wb").write(b"".join(table + outlines))
P
