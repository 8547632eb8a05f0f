/* Checks an archive with io_uring, past the page cache. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK (128 * 1024)

int main(void)
{
	struct io_uring ring;
	int fd = open("archive.bin", O_RDONLY | O_DIRECT);
	if (fd < 0) {
		perror("archive.bin");
		return 1;
	}
	off_t size = lseek(fd, 0, SEEK_END);
	if (io_uring_queue_init(64, &ring, 0))
		return 1;
	unsigned char *buf;
	if (posix_memalign((void **)&buf, 4096, CHUNK))
		return 1;
	unsigned long a = 1, b = 0;
	for (off_t at = 0; at < size; at += CHUNK) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
		struct io_uring_cqe *cqe;
		io_uring_prep_read(sqe, fd, buf, CHUNK, at);
		if (io_uring_submit(&ring) < 0 || io_uring_wait_cqe(&ring, &cqe))
			return 1;
		int n = cqe->res;
		io_uring_cqe_seen(&ring, cqe);
		if (n != CHUNK)
			return 1;
		for (int i = 0; i < n; i++) {
			a += buf[i];
			b += a;
		}
	}
	printf("%lx%lx\n", a, b);
	return 0;
}
