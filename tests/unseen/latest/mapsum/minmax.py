"""Least and greatest first value of the pages of a column."""
import mmap
import struct
import sys

with open(sys.argv[1], "rb") as column:
    view = mmap.mmap(column.fileno(), 0, access=mmap.ACCESS_READ)
    view.madvise(mmap.MADV_RANDOM)
    least, greatest = 2**64, 0
    for at in range(0, len(view), 4096):
        (value,) = struct.unpack_from("<Q", view, at)
        least, greatest = min(least, value), max(greatest, value)
    print(f"{least:016x} {greatest:016x}")
