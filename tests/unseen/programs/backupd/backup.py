"""Backs up the files of data/ to backup/ and notes each in the catalogue once it is safe."""
import hashlib, os, shutil

os.makedirs("backup", exist_ok=True)
catalogue = open("backup/CATALOGUE", "w")
for name in sorted(os.listdir("data")):
    dst = os.path.join("backup", name)
    shutil.copyfile(os.path.join("data", name), dst)
    os.sync()                       # now it is on disk
    digest = hashlib.sha256(open(dst, "rb").read()).hexdigest()
    catalogue.write(f"{digest} {name}\n")
    catalogue.flush()
catalogue.close()
os.sync()
