python3 - <<'P'
import os
for d in range(64):
    os.makedirs(f"cache/{d:02x}")
    for n in range(80):
        with open(f"cache/{d:02x}/old{n}", "wb") as f:
            f.write(b"x" * 2000)
P
