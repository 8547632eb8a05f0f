/usr/bin/python3 - <<'P'
import os
for n in range(250):
    d = f"tree/d{n % 20}"
    os.makedirs(d, exist_ok=True)
    open(f"{d}/f{n}", "wb").write(os.urandom(2000 + n * 37 % 9000))
P
mke2fs -q -t ext4 -O ^metadata_csum -d tree disk.img 64M
rm -r tree
