/usr/bin/python3 - <<'P'
import os, struct, zlib
os.mkdir("photos")
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
w, h = 400, 300
for i in range(60):
    rows = b"".join(b"\0" + os.urandom(w * 3) for _ in range(h))
    with open("photos/img%03d.png" % i, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))
P
