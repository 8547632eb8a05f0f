import sys
import numpy
from mpi4py import MPI

# a field of 20000 x 32, a block of columns for each process
comm = MPI.COMM_WORLD
rows, columns = 20000, 32
width = columns // comm.size
part = numpy.full((rows, width), comm.rank, dtype="d")
view = MPI.DOUBLE.Create_subarray([rows, columns], [rows, width], [0, comm.rank * width]).Commit()
out = MPI.File.Open(comm, "field.bin", MPI.MODE_CREATE | MPI.MODE_WRONLY)
for step in range(25):
    out.Set_view(step * rows * columns * 8, MPI.DOUBLE, view)
    if sys.argv[1] == "each":
        for row in part:
            out.Write(row)
    else:
        out.Write_all(part)
out.Close()
