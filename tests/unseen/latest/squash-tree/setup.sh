python3 - <<'P'
import os, random
r = random.Random(12)
for d in range(12):
    os.makedirs(f"root/usr/lib{d}")
    for n in range(20):
        with open(f"root/usr/lib{d}/lib{n}.so", "wb") as f:
            f.write(r.randbytes(400_000) + b"symbol table " * 60_000)
P
