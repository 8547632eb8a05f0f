python3 - <<'P'
import os
block = os.urandom(4096)
with open("guest.raw", "wb") as image:
    image.truncate(640 << 20)
    for n in range(4000):
        image.seek(n * 160 * 1024 // 4096 * 4096)
        image.write(block)
P
qemu-img convert -f raw -O qcow2 guest.raw guest.qcow2
rm guest.raw
