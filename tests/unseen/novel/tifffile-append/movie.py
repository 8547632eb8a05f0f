# frames of a microscope
import sys
import numpy, tifffile

rng = numpy.random.default_rng(1)
frames = (rng.integers(0, 4000, (64, 64), dtype="u2") for _ in range(900))
if sys.argv[1] == "each":
    for frame in frames:
        tifffile.imwrite("movie.tif", frame, append=True, photometric="minisblack")
else:
    with tifffile.TiffWriter("movie.tif", append=True) as movie:
        for frame in frames:
            movie.write(frame, photometric="minisblack")
