/usr/bin/python3 - <<'P'
from PIL import Image
import random
r = random.Random(5)
for n in range(6):
    Image.frombytes("RGB", (200, 150), r.randbytes(90000)).resize((2400, 1800)).save(f"photo{n}.jpg")
P
