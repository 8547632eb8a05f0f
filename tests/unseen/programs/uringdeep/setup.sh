/usr/bin/python3 -c '
import random
r = random.Random(9)
b = r.randbytes(1 << 20)
with open("table.bin", "wb") as f:
    for i in range(320): f.write(b)'
