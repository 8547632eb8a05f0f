/usr/bin/python3 - <<'P'
import os, struct
groups, columns, chunk = 60, 16, 512 << 10
with open("sales.col", "wb") as f:
    for g in range(groups):
        row = os.urandom(chunk)
        for c in range(columns): f.write(row)
    f.write(struct.pack("<QQQ", groups, columns, chunk))
P
