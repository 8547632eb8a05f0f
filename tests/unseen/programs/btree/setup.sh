/usr/bin/python3 - <<'P'
import struct
F = 64
with open("customers.idx", "wb") as f:
    f.write(struct.pack(">64q", *range(1, F + 1)).ljust(4096, b"\0"))
    for i in range(F):
        f.write(struct.pack(">64q", *(1 + F + i * F + j for j in range(F))).ljust(4096, b"\0"))
    for l in range(F * F):
        f.write(struct.pack(">64q", *(l * F + j for j in range(F))).ljust(4096, b"\1"))
P
