/usr/bin/python3 -c '
import numpy as np
np.lib.format.open_memmap("visits.npy", mode="w+", dtype="u8", shape=(8_000_000,)).flush()'
