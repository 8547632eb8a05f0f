/* Fetches many records of a big table at once: io_uring, up to 64 reads under way. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEPTH 64
#define PAGE 8192
#define TOTAL 16000

int main(void)
{
	struct io_uring ring;
	int fd = open("table.bin", O_RDONLY | O_DIRECT);
	if (fd < 0) {
		perror("table.bin");
		return 1;
	}
	unsigned long pages = lseek(fd, 0, SEEK_END) / PAGE, x = 17, sum = 0;
	unsigned char *buf;
	if (io_uring_queue_init(DEPTH, &ring, 0) ||
	    posix_memalign((void **)&buf, 4096, DEPTH * PAGE))
		return 1;
	int sent = 0, done = 0, slots[DEPTH], nfree = DEPTH;
	for (int i = 0; i < DEPTH; i++)
		slots[i] = i;
	while (done < TOTAL) {
		while (nfree && sent < TOTAL) {
			int s = slots[--nfree];
			x = x * 6364136223846793005ul + 1442695040888963407ul;
			struct io_uring_sqe *q = io_uring_get_sqe(&ring);
			io_uring_prep_read(q, fd, buf + s * PAGE, PAGE, ((x >> 24) % pages) * PAGE);
			q->user_data = s;
			sent++;
		}
		if (io_uring_submit_and_wait(&ring, 1) < 0)
			return 1;
		struct io_uring_cqe *c;
		while (!io_uring_peek_cqe(&ring, &c)) {
			if (c->res != PAGE) {
				fprintf(stderr, "read: %d\n", c->res);
				return 1;
			}
			for (int i = 0; i < PAGE; i += 8)
				sum += buf[c->user_data * PAGE + i];
			slots[nfree++] = c->user_data;
			done++;
			io_uring_cqe_seen(&ring, c);
		}
	}
	printf("%lx\n", sum);
	return 0;
}
