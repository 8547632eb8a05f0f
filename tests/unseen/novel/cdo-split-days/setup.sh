exec /usr/bin/python3 - <<'P'
import numpy, netCDF4
with netCDF4.Dataset("year.nc", "w", format="NETCDF4") as nc:
    nc.createDimension("time", None); nc.createDimension("lat", 90); nc.createDimension("lon", 120)
    t = nc.createVariable("time", "f8", ("time",)); t.units = "days since 2001-01-01"; t.calendar = "standard"
    y = nc.createVariable("lat", "f8", ("lat",)); y.units = "degrees_north"; y.standard_name = "latitude"; y[:] = numpy.linspace(-89, 89, 90)
    x = nc.createVariable("lon", "f8", ("lon",)); x.units = "degrees_east"; x.standard_name = "longitude"; x[:] = numpy.arange(120) * 3.0
    v = nc.createVariable("t2m", "f4", ("time", "lat", "lon"), zlib=True)
    rng = numpy.random.default_rng(1)
    for n in range(200):
        t[n] = n
        v[n] = rng.integers(0, 300, (90, 120))
P
