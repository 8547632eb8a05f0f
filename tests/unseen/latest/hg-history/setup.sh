set -e
export HGPLAIN=1 HGUSER=a HGRCPATH=
hg init repo
cd repo
python3 - <<'P'
import os, random
r = random.Random(3)
for n in range(120):
    os.makedirs(f"d{n % 10}", exist_ok=True)
    with open(f"d{n % 10}/f{n}", "w") as f:
        f.writelines(f"{r.random()}\n" for _ in range(2000))
P
hg commit -q -A -m import
