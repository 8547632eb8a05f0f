/usr/bin/python3 - <<'P'
import numpy as np
a = np.lib.format.open_memmap("features.npy", mode="w+", dtype="float32", shape=(60000, 1024))
r = np.random.default_rng(1)
for n in range(0, 60000, 5000):
    a[n:n + 5000] = r.random((5000, 1024), dtype="float32")
a.flush()
P
