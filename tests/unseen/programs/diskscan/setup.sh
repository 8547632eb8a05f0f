/usr/bin/python3 -c '
import random
r = random.Random(9)
with open("volume.img", "wb") as f:
    for i in range(48): f.write(r.randbytes(1 << 20))'
