/usr/bin/python3 - <<'P'
import io, random, tarfile
r = random.Random(9)
with tarfile.open("pkg.tar", "w") as t:
    for i in range(160):
        i_ = tarfile.TarInfo("module%03d.so" % i)
        b = r.randbytes(60000 + i * 100)
        i_.size = len(b)
        t.addfile(i_, io.BytesIO(b))
P
