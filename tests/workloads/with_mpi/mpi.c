/* MPI-IO by several ranks, whose calls and offsets are known: collective writes, each rank's own
 * writes, and reads, of whole blocks of integers. */
#include <mpi.h>
#include <stdlib.h>

enum { COLLECTIVE = 8, OWN = 4, INTEGERS = 1024, BLOCK = 4096, OWN_AT = 1 << 20 };

static void must(int result)
{
	if (result != MPI_SUCCESS)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	int rank, ranks, data[INTEGERS];
	MPI_File file;
	must(MPI_Init(&argc, &argv));
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	must(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
			   &file));
	for (int i = 0; i < INTEGERS; i++)
		data[i] = rank;
	for (int i = 0; i < COLLECTIVE; i++) {
		MPI_Offset at = (MPI_Offset)(i * ranks + rank) * BLOCK;
		must(MPI_File_write_at_all(file, at, data, INTEGERS, MPI_INT, MPI_STATUS_IGNORE));
	}
	for (int i = 0; i < OWN; i++) {
		MPI_Offset at = OWN_AT + (MPI_Offset)(i * ranks + rank) * BLOCK;
		must(MPI_File_write_at(file, at, data, INTEGERS, MPI_INT, MPI_STATUS_IGNORE));
	}
	must(MPI_File_sync(file));
	for (int i = 0; i < COLLECTIVE; i++) {
		MPI_Offset at = (MPI_Offset)(i * ranks + rank) * BLOCK;
		must(MPI_File_read_at(file, at, data, INTEGERS, MPI_INT, MPI_STATUS_IGNORE));
		for (int n = 0; n < INTEGERS; n++)
			if (data[n] != rank)
				MPI_Abort(MPI_COMM_WORLD, 3);
	}
	must(MPI_File_close(&file));
	MPI_Finalize();
	return 0;
}
