exec /usr/bin/python3 - <<'P'
import struct
with open("trades.bin", "wb") as out:
    for n in range(1200000):
        out.write(struct.pack("<QdIHH", n, 100 + n % 77 / 8, n % 500, n % 5, 0))
P
