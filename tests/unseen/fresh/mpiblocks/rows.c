/* Writes the fields of a cell model: each process has a block of rows of the matrix. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 60000, COLUMNS = 64 };

int main(int argc, char **argv)
{
	int rank, size;
	MPI_File out;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int mine = COLUMNS / size;
	double *part = malloc(sizeof(double) * ROWS * mine);
	for (int i = 0; i < ROWS * mine; i++)
		part[i] = rank + i * 0.25;
	if (MPI_File_open(MPI_COMM_WORLD, "fields.bin", MPI_MODE_CREATE | MPI_MODE_WRONLY,
			  MPI_INFO_NULL, &out)) {
		fprintf(stderr, "fields.bin cannot be opened\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_File_write_at_all(out, (MPI_Offset)rank * ROWS / size * COLUMNS * sizeof(double), part,
			      ROWS * mine, MPI_DOUBLE, MPI_STATUS_IGNORE);
	MPI_File_close(&out);
	free(part);
	MPI_Finalize();
	return 0;
}
