/usr/bin/python3 - <<'P'
import h5py, numpy as np
r = np.random.default_rng(2)
with h5py.File("images.h5", "w") as f:
    d = f.create_dataset("images", (12000, 128, 128), "u1", chunks=(1, 128, 128))
    for n in range(0, 12000, 500):
        d[n:n + 500] = r.integers(0, 255, (500, 128, 128), dtype=np.uint8)
P
