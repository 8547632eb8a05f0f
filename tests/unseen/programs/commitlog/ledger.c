/* Ledger: a transaction is acknowledged when its log record is on disk. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fd;
static off_t end;

static void commit(const char *rec, size_t n)
{
	if (pwrite(fd, rec, n, end) != (ssize_t)n) {
		perror("write");
		exit(1);
	}
	/* cheaper than fsync: only these bytes, no metadata */
	if (sync_file_range(fd, end, n,
			    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
				    SYNC_FILE_RANGE_WAIT_AFTER)) {
		perror("sync_file_range");
		exit(1);
	}
	end += n;
}

int main(void)
{
	static char rec[16384];
	fd = open("ledger.log", O_CREAT | O_WRONLY, 0644);
	if (fd < 0) {
		perror("ledger.log");
		return 1;
	}
	end = lseek(fd, 0, SEEK_END);
	for (int t = 0; t < 900; t++) {
		for (size_t i = 0; i < sizeof rec; i += 64)
			snprintf(rec + i, 64, "tx %08d posting %04zu account %06d amount %09d", t,
				 i / 64, t * 13 % 999983, t * 7);
		commit(rec, sizeof rec);
		if (t % 100 == 99)
			printf("acknowledged %d\n", t + 1);
	}
	close(fd);
	return 0;
}
