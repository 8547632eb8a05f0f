python3 - <<'P'
import os
for d in range(40):
    os.makedirs(f"www/d{d}")
    for f in range(100):
        open(f"www/d{d}/f{f}", "wb").write(os.urandom(3000 + (d * 37 + f * 91) % 9000))
P
