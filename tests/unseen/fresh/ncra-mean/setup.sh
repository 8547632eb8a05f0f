/usr/bin/python3 - <<'P'
import numpy as np, h5py
r = np.random.default_rng(3)
for day in range(12):
    with h5py.File(f"day{day:02}.nc", "w") as f:
        for name, n in (("time", 4), ("lat", 720), ("lon", 1000)):
            d = f.create_dataset(name, (n,), "f8", maxshape=(None if name == "time" else n,))
            d[:] = np.arange(n)
            d.make_scale(name)
        v = f.create_dataset("t2m", (4, 720, 1000), "f4", maxshape=(None, 720, 1000), chunks=(1, 720, 1000))
        v[:] = r.random((4, 720, 1000), dtype="f4")
        for axis, name in enumerate(("time", "lat", "lon")):
            v.dims[axis].attach_scale(f[name])
P
