/usr/bin/python3 - <<'P'
import h5py, numpy as np
r = np.random.default_rng(2)
with h5py.File("traces.h5", "w") as f:
    d = f.create_dataset("traces", (400, 8192), "i4", chunks=(100, 8192), compression="lzf")
    for n in range(0, 400, 100):
        d[n:n + 100] = r.integers(0, 5000, (100, 8192))
P
