# the series of some stations from a reanalysis
import sys
import netCDF4, numpy

stations = [(n * 37 % 180, n * 61 % 200) for n in range(120)]
with netCDF4.Dataset("t2m.nc") as nc:
    t2m = nc["t2m"]
    if sys.argv[1] == "each":
        series = [t2m[:, lat, lon] for lat, lon in stations]
    else:
        lats, lons = zip(*stations)
        days = [t2m[t : t + 50].data[:, lats, lons] for t in range(0, t2m.shape[0], 50)]
        series = numpy.concatenate(days).T
print(sum(float(s.mean()) for s in series))
