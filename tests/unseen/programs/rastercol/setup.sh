/usr/bin/python3 -c '
import random
r = random.Random(9)
with open("raster.bin", "wb") as f:
    for i in range(64): f.write(r.randbytes(1 << 20))'
