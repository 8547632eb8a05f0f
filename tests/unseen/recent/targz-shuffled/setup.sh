/usr/bin/python3 - <<'P'
import io, os, random, tarfile
r = random.Random(5)
with tarfile.open("images.tar.gz", "w:gz", compresslevel=1) as t:
    for n in range(200):
        data = r.randbytes(60000) + bytes(40000)
        m = tarfile.TarInfo(f"img{n:04d}.bin")
        m.size = len(data)
        t.addfile(m, io.BytesIO(data))
P
