"""Takes new pictures into the catalog: kind, size and checksum of each."""
import hashlib
import os
import magic
from PIL import Image

kinds = magic.Magic(mime=True)


def checksum(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def describe(path):
    if not kinds.from_file(path).startswith("image/"):
        return None
    with Image.open(path) as picture:
        width, height = picture.size
    return f"{checksum(path)} {width}x{height} {os.path.getsize(path)} {path}\n"


with open("catalog", "w") as out:
    for name in sorted(os.listdir("inbox")):
        line = describe(os.path.join("inbox", name))
        if line:
            out.write(line)
    out.flush()
    os.fsync(out.fileno())
