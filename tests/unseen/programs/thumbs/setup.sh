/usr/bin/python3 - <<'P'
import os, random
r = random.Random(3)
os.makedirs("photos", exist_ok=True)
for i in range(250):
    with open("photos/img%04d.ppm" % i, "wb") as f:
        f.write(b"P6 200 200 255\n" + r.randbytes(120000))
P
