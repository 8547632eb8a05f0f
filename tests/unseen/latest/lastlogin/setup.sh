python3 - <<'P'
import struct
with open("lastlog", "wb") as f:
    for uid in [0, 33, 1000, 1001, 1002, 65534, 1000500, 1000733, 2400017, 3000001]:
        f.seek(uid * 292)
        f.write(struct.pack("<I32s256s", 1700000000 + uid, b"pts/1", b"10.0.0.7"))
P
