mkdir -p www
/usr/bin/python3 -c '
import random
r = random.Random(9)
for v in range(20):
    b = r.randbytes(1 << 20)
    with open("www/file%02d.bin" % v, "wb") as f:
        for i in range(12): f.write(b)'
