/usr/bin/python3 -c '
import random
r = random.Random(9)
for v in range(4):
    with open("vol%d.bin" % v, "wb") as f:
        for i in range(64): f.write(r.randbytes(1 << 20))'
