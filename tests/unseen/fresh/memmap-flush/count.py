"""Counts the visits of each page; after each batch what was counted must be on the disk."""
import numpy as np

visits = np.lib.format.open_memmap("visits.npy", mode="r+")
r = np.random.default_rng(7)
for batch in range(400):
    np.add.at(visits, r.integers(0, len(visits), 150), 1)
    visits.flush()
print(int(visits.sum()))
