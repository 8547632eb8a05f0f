exec /usr/bin/python3 - <<'P'
import numpy, netCDF4
with netCDF4.Dataset("sst.nc", "w") as nc:
    for name, size in (("time", 365), ("lat", 180), ("lon", 240)):
        nc.createDimension(name, size)
    v = nc.createVariable("sst", "f4", ("time", "lat", "lon"), chunksizes=(1, 180, 240))
    rng = numpy.random.default_rng(1)
    for t in range(365):
        v[t] = rng.random((180, 240), dtype="f4")
P
