"""Makes grey thumbnails of the PPM images in photos/ by way of an intermediate file per image."""
import os, subprocess, sys, tempfile

os.makedirs("thumbs", exist_ok=True)
os.makedirs("tmp", exist_ok=True)
tempfile.tempdir = os.path.abspath("tmp")

def to_grey(src):
    with open(src, "rb") as f:
        data = f.read()
    head, body = data[:15], data[15:]
    r, g, b = body[0::3], body[1::3], body[2::3]
    out = tempfile.NamedTemporaryFile(suffix=".grey", delete=False)
    out.write(bytes((x + y + z) // 3 for x, y, z in zip(r, g, b)))
    out.close()
    return out.name

def shrink(src, dst):
    with open(src, "rb") as f:
        grey = f.read()
    small = b"".join(grey[y * 200:(y + 1) * 200:4] for y in range(0, 200, 4))
    with open(dst, "wb") as f:
        f.write(b"P5 50 50 255\n" + small)

for name in sorted(os.listdir("photos")):
    grey = to_grey(os.path.join("photos", name))
    shrink(grey, os.path.join("thumbs", name.replace(".ppm", ".pgm")))
