/usr/bin/python3 - <<'P'
import random
r = random.Random(4)
w, h = 9000, 6000
with open("elevation.bil", "wb") as f:
    for y in range(h):
        f.write(r.randbytes(w * 2))
open("elevation.hdr", "w").write(f"BYTEORDER I\nLAYOUT BIL\nNROWS {h}\nNCOLS {w}\nNBANDS 1\nNBITS 16\n")
P
gdal_translate -q -of GTiff -co BLOCKYSIZE=16 elevation.bil elevation.tif
rm elevation.bil elevation.hdr
