exec /usr/bin/python3 - <<'P'
import numpy, netCDF4
with netCDF4.Dataset("t2m.nc", "w") as nc:
    for name, size in (("time", 1500), ("lat", 180), ("lon", 200)):
        nc.createDimension(name, size)
    v = nc.createVariable("t2m", "f4", ("time", "lat", "lon"), contiguous=True)
    rng = numpy.random.default_rng(1)
    for t in range(0, 1500, 100):
        v[t : t + 100] = rng.random((100, 180, 200), dtype="f4")
P
