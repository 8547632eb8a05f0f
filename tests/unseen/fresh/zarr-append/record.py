"""Appends what the station measures each second to an array; a row has 24 sensors."""
import sys
import numpy as np
import zarr

rows = 1500
z = zarr.open("station.zarr", mode="w", shape=(0, 24), chunks=(4096, 24), dtype="f4")
at_once = int(sys.argv[1]) if sys.argv[1:] else 1
for n in range(0, rows, at_once):
    z.append(np.arange(n * 24, (n + at_once) * 24, dtype="f4").reshape(-1, 24) % 97)
print(z.shape, float(z[-1, 3]))
