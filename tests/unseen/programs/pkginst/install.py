"""Installs a package: all files into a staging directory, made durable in one batch, then put in place."""
import os, tarfile

STAGE, DEST = "lib/.pkg.new", "lib/pkg"
os.makedirs(STAGE)
paths = []
with tarfile.open("pkg.tar") as tar:
    for m in tar:
        dst = os.path.join(STAGE, m.name)
        with open(dst, "wb") as out:
            out.write(tar.extractfile(m).read())
        paths.append(dst)
for p in paths:
    fd = os.open(p, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)

def syncdir(d):
    fd = os.open(d, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)

syncdir(STAGE)
os.rename(STAGE, DEST)
syncdir("lib")
syncdir(".")
