/usr/bin/python3 -c '
import random
r = random.Random(9)
with open("sales.tbl", "wb") as f:
    for i in range(128): f.write(r.randbytes(1 << 20))'
