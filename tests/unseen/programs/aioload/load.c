/* Loads a table with asynchronous direct writes of 256 KB, sixteen under way, into reserved room. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libaio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK (256 * 1024)
#define DEPTH 16
#define TOTAL 2000

int main(void)
{
	io_context_t ctx = 0;
	struct iocb cb[DEPTH], *p;
	struct io_event ev[DEPTH];
	char *buf[DEPTH];
	int fd = open("table.dat", O_CREAT | O_TRUNC | O_WRONLY | O_DIRECT, 0644),
	    dir = open(".", O_RDONLY);
	if (fd < 0 || posix_fallocate(fd, 0, (off_t)BLOCK * TOTAL)) {
		perror("table.dat");
		return 1;
	}
	if (io_setup(DEPTH, &ctx))
		return 1;
	int idle[DEPTH], n = DEPTH, sent = 0, done = 0;
	for (int i = 0; i < DEPTH; i++) {
		idle[i] = i;
		if (posix_memalign((void **)&buf[i], 4096, BLOCK))
			return 1;
	}
	while (done < TOTAL) {
		while (n && sent < TOTAL) {
			int s = idle[--n];
			memset(buf[s], sent, BLOCK);
			io_prep_pwrite(&cb[s], fd, buf[s], BLOCK, (off_t)sent * BLOCK);
			cb[s].data = (void *)(long)s;
			p = &cb[s];
			if (io_submit(ctx, 1, &p) != 1)
				return 1;
			sent++;
		}
		int got = io_getevents(ctx, 1, DEPTH, ev, NULL);
		if (got < 0)
			return 1;
		for (int i = 0; i < got; i++) {
			if ((long)ev[i].res != BLOCK) {
				fprintf(stderr, "write: %ld\n", (long)ev[i].res);
				return 1;
			}
			idle[n++] = (long)ev[i].data;
			done++;
		}
	}
	if (fsync(fd) || fsync(dir)) {
		perror("fsync");
		return 1;
	}
	io_destroy(ctx);
	return 0;
}
