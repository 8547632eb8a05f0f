/usr/bin/python3 -c '
import random
r = random.Random(9)
with open("dict.db", "wb") as f:
    for i in range(160): f.write(r.randbytes(1 << 20))'
