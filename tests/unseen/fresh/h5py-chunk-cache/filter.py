"""Energy of each trace of a survey."""
import sys
import h5py
import numpy as np

more = {"rdcc_nbytes": 64 << 20} if sys.argv[1:] else {}
with h5py.File("traces.h5", "r", **more) as f:
    traces = f["traces"]
    energy = np.array([float((traces[n].astype("f8") ** 2).sum()) for n in range(traces.shape[0])])
print(energy.mean().round(2))
