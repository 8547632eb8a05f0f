mkdir -p data
/usr/bin/python3 -c '
import random
r = random.Random(9)
for v in range(16):
    with open("data/vol%02d.bin" % v, "wb") as f:
        for i in range(20): f.write(r.randbytes(1 << 20))'
