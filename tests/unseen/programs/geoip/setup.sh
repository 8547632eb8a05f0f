/usr/bin/python3 -c '
import random
r = random.Random(9)
with open("geo.db", "wb") as f:
    for i in range(256): f.write(r.randbytes(1 << 20))'
