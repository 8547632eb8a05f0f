mkdir -p uploads
/usr/bin/python3 -c '
import random
r = random.Random(9)
h = [b"%PDF-1.4", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"<html>", b"PK\x03\x04"]
for i in range(8000):
    with open("uploads/u%05d" % i, "wb") as f: f.write(h[i % 5] + r.randbytes(16000))'
