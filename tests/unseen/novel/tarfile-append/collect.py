# gathers the results of the jobs in one archive
import io, sys, tarfile


def add(archive, n):
    data = (b"job %d\n" % n) * (n % 300)
    info = tarfile.TarInfo("results/%04d.txt" % n)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


if sys.argv[1] == "each":
    for n in range(500):
        with tarfile.open("results.tar", "a") as archive:
            add(archive, n)
else:
    with tarfile.open("results.tar", "a") as archive:
        for n in range(500):
            add(archive, n)
