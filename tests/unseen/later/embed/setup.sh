/usr/bin/python3 - <<'P'
import array, random
r = random.Random(5)
rows = [array.array("f", [r.random() for _ in range(256)]).tobytes() for _ in range(512)]
with open("vectors.f32", "wb") as f:
    for i in range(250000 // 512):
        f.write(b"".join(rows))
P
