mkdir -p data
/usr/bin/python3 -c '
import random
r = random.Random(9)
for i in range(24):
    with open("data/vol%02d" % i, "wb") as f: f.write(r.randbytes(4 << 20))'
