"""Logs what the experiment measures; after each reading the file is flushed so that nothing is lost."""
import sys
import h5py
import numpy as np

every = int(sys.argv[1]) if sys.argv[1:] else 1
with h5py.File("run.h5", "w") as f:
    d = f.create_dataset("readings", (0, 16), "f8", maxshape=(None, 16), chunks=(512, 16))
    for n in range(6000):
        d.resize(n + 1, axis=0)
        d[n] = np.full(16, n % 97)
        if n % every == every - 1:
            f.flush()
    print(d.shape)
