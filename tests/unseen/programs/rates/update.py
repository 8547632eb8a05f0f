import os, time
# the rates of three days, each put in place atomically
for day in range(3):
    time.sleep(0.25)
    with open("rates.dat.tmp", "wb") as f:
        for i in range(1024):
            f.write((day * 1000 + i).to_bytes(8, "big") * 512)
        f.flush()
        os.fsync(f.fileno())
    os.rename("rates.dat.tmp", "rates.dat")
    d = os.open(".", os.O_RDONLY)
    os.fsync(d)
    os.close(d)
