/* Keeps a log of transfers: a batch counts as committed when its range has been synced. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BATCHES = 3000, BATCH = 4096 };

static int commit(int log, off_t from, size_t length)
{
#ifdef WHOLE
	(void)from;
	(void)length;
	return fdatasync(log);
#else
	return sync_file_range(log, from, length,
			       SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
				       SYNC_FILE_RANGE_WAIT_AFTER);
#endif
}

int main(void)
{
	char batch[BATCH];
	off_t end = 0;
	int log = open("transfers.log", O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (log < 0) {
		perror("transfers.log");
		return 1;
	}
	FILE *done = fopen("acknowledged", "w");
	for (int n = 0; n < BATCHES; n++) {
		memset(batch, ' ', sizeof(batch));
		int used = snprintf(batch, sizeof(batch), "batch %d: %d transfers", n, n % 90);
		batch[used] = ' ';
		batch[BATCH - 1] = '\n';
		if (write(log, batch, sizeof(batch)) != BATCH || commit(log, end, BATCH)) {
			perror("transfers.log");
			return 1;
		}
		end += BATCH;
		/* from here on the other bank may forget the batch */
		fprintf(done, "%d\n", n);
	}
	fclose(done);
	close(log);
	return 0;
}
