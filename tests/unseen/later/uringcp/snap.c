/* Takes a copy of a disk image past the page cache: 24 blocks of 256 KB under way at once. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK (256 * 1024)
#define DEPTH 24

struct block {
	char *data;
	off_t at;
	int writing;
};

static void submit(struct io_uring *ring, struct block *b, int in, int out)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (b->writing)
		io_uring_prep_write(sqe, out, b->data, BLOCK, b->at);
	else
		io_uring_prep_read(sqe, in, b->data, BLOCK, b->at);
	io_uring_sqe_set_data(sqe, b);
}

int main(void)
{
	struct io_uring ring;
	struct io_uring_cqe *cqe;
	struct block blocks[DEPTH];
	struct stat st;
	int in = open("disk.img", O_RDONLY | O_DIRECT),
	    out = open("snap.img", O_CREAT | O_EXCL | O_WRONLY | O_DIRECT, 0644),
	    dir = open(".", O_RDONLY | O_DIRECTORY);
	off_t next = 0;
	int busy = 0;

	if (in < 0 || out < 0 || dir < 0 || fstat(in, &st) || st.st_size % BLOCK) {
		perror("disk.img");
		return 1;
	}
	if (posix_fallocate(out, 0, st.st_size) || io_uring_queue_init(64, &ring, 0))
		return 1;
	for (int i = 0; i < DEPTH && next < st.st_size; i++, next += BLOCK, busy++) {
		if (posix_memalign((void **)&blocks[i].data, 4096, BLOCK))
			return 1;
		blocks[i].at = next;
		blocks[i].writing = 0;
		submit(&ring, &blocks[i], in, out);
	}
	while (busy) {
		if (io_uring_submit_and_wait(&ring, 1) < 0 || io_uring_peek_cqe(&ring, &cqe))
			return 1;
		struct block *b = io_uring_cqe_get_data(cqe);
		if (cqe->res != BLOCK) {
			fprintf(stderr, "block at %lld: %d\n", (long long)b->at, cqe->res);
			return 1;
		}
		io_uring_cqe_seen(&ring, cqe);
		if (b->writing && next >= st.st_size) {
			busy--;
			continue;
		}
		if (b->writing) {
			b->at = next;
			next += BLOCK;
		}
		b->writing = !b->writing;
		submit(&ring, b, in, out);
	}
	if (fsync(out) || fsync(dir)) {
		perror("snap.img");
		return 1;
	}
	return 0;
}
