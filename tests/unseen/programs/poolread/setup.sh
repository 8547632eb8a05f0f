mkdir -p album
/usr/bin/python3 -c '
import random
r = random.Random(9)
for i in range(300):
    with open("album/p%04d.jpg" % i, "wb") as f: f.write(r.randbytes(700000))'
