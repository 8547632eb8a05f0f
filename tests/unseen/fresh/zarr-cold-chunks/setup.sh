/usr/bin/python3 - <<'P'
import numpy as np, zarr
r = np.random.default_rng(6)
z = zarr.open("weather.zarr", mode="w", shape=(100, 1024, 1024), chunks=(1, 128, 128), dtype="u1", compressor=None)
for t in range(100):
    z[t] = r.integers(0, 255, (1024, 1024), dtype=np.uint8)
P
