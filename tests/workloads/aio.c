/*
 * Operations of Linux AIO. Usage: aio DIR. DIR is empty and on a file system
 * that does direct I/O.
 */
#include "truth.h"

#include <linux/aio_abi.h>
#include <poll.h>
#include <sys/uio.h>

#define BAD_FD 987

static char *buffer;
static aio_context_t context;
static long serial = 500;

/* One that is submitted, and what its row must say. */
struct job {
	struct iocb iocb;
	struct expect x;
	const char *name;
	int done;
	long ret;
};

static struct job job(const char *name, int opcode, int fd, void *data, unsigned long bytes,
		      long offset, struct expect x)
{
	struct job made = { .name = name, .x = x };
	made.iocb.aio_lio_opcode = (unsigned short)opcode;
	made.iocb.aio_fildes = (unsigned)fd;
	made.iocb.aio_buf = (unsigned long)data;
	made.iocb.aio_nbytes = bytes;
	made.iocb.aio_offset = offset;
	made.iocb.aio_data = (unsigned long long)serial;
	made.x.user_data = serial++;
	made.x.fd = fd;
	truth_identity(&made.x);
	return made;
}

#define PREAD(fd, n, at, ...) job("IOCB_CMD_PREAD", 0, fd, buffer, n, at, X(__VA_ARGS__))
#define PWRITE(fd, n, at, ...) job("IOCB_CMD_PWRITE", 1, fd, buffer, n, at, X(__VA_ARGS__))

/* Takes completions until there were as many. */
static void reap(struct job *jobs, long count, long completions)
{
	while (completions > 0) {
		struct io_event events[4];
		long n = T(io_getevents, X(), context, 1L, 4L, events, NULL);
		if (n < 1)
			truth_die("io_getevents");
		for (long i = 0; i < n; i++)
			for (long j = 0; j < count; j++)
				if (events[i].obj == (unsigned long)&jobs[j].iocb) {
					jobs[j].ret = (long)events[i].res;
					jobs[j].done = 1;
				}
		completions -= n;
	}
}

/* Submits in one call. The rows stand before those of the calls that reap. */
static void submit(struct job *jobs, long count, long accepted)
{
	struct iocb *pointers[8];
	for (long i = 0; i < count; i++)
		pointers[i] = &jobs[i].iocb;
	if (T(io_submit, X(), context, count, pointers) != accepted)
		truth_die("io_submit");
	unsigned first = truth_current->count;
	long rows = accepted > 0 ? accepted : 0;
	for (long i = 0; i < rows; i++)
		truth_note(jobs[i].name, jobs[i].x, 0);
	reap(jobs, count, rows);
	for (long i = 0; i < rows; i++)
		truth_current->entries[first + i].ret = jobs[i].ret;
}

static void one(struct job made)
{
	submit(&made, 1, 1);
}

static int opened(const char *path, int flags)
{
	int fd = (int)T(openat, X(.arg = path, .path = path), AT_FDCWD, path, flags, 0644);
	return ident(fd, path);
}

static void buffered(const char *path)
{
	int fd = opened(path, O_RDWR | O_CREAT);
	struct iovec two[2] = { { buffer, 100 }, { buffer + 100, 28 } };
	one(PWRITE(fd, 10000, 0, .size = 10000, .offset = 0));
	one(PREAD(fd, 4096, 8192, .size = 4096, .offset = 8192));
	one(PREAD(fd, 10, 20000, .size = 10, .offset = 20000));
	one(job("IOCB_CMD_PREAD", 0, fd, (void *)8, 10, 0, X(.size = 10)));
	one(job("IOCB_CMD_PREADV", 7, fd, two, 2, 5, X(.size = 128, .offset = 5)));
	one(job("IOCB_CMD_PWRITEV", 8, fd, two, 2, 7, X(.size = 128, .offset = 7)));
	one(job("IOCB_CMD_FSYNC", 2, fd, NULL, 0, 0, X(.size = NONE, .offset = NONE)));
	one(job("IOCB_CMD_FDSYNC", 3, fd, NULL, 0, 0, X(.size = NONE)));

	/* Refused: no operation comes of it. */
	struct job bad = PREAD(BAD_FD, 10, 0);
	submit(&bad, 1, -1);
	/* The third is refused, so the fourth is not looked at. */
	struct job batch[4] = { PREAD(fd, 11, 1, .size = 11, .offset = 1),
				PREAD(fd, 12, 2, .size = 12, .offset = 2), bad, PREAD(fd, 13, 3) };
	submit(batch, 4, 2);
	/* The same control blocks again. */
	struct job again[3] = { PREAD(fd, 21, 1, .size = 21, .offset = 1),
				PWRITE(fd, 22, 2, .size = 22, .offset = 2),
				PREAD(fd, 23, 3, .size = 23, .offset = 3) };
	submit(again, 3, 3);
	submit(again, 3, 3);
	close_logged(fd);

	fd = opened(path, O_RDWR | O_APPEND);
	one(PWRITE(fd, 50, 3, .size = 50));
	close_logged(fd);
}

static void direct(const char *path)
{
	int fd = opened(path, O_RDWR | O_CREAT | O_DIRECT);
	/* Extends the file, then does not. */
	one(PWRITE(fd, 16384, 0, .size = 16384, .offset = 0));
	struct job batch[6];
	for (int i = 0; i < 6; i++)
		batch[i] = i & 1 ? PWRITE(fd, 4096, 4096 * (i % 4), .size = 4096,
					  .offset = 4096 * (i % 4), .op_flags = "0")
				 : PREAD(fd, 4096, 4096 * (i % 4), .size = 4096,
					 .offset = 4096 * (i % 4), .op_flags = "0");
	submit(batch, 6, 6);
	submit(batch, 6, 6);
	/* Short, at the end and beyond. */
	one(PREAD(fd, 8192, 12288, .size = 8192, .offset = 12288));
	one(PREAD(fd, 4096, 65536, .size = 4096, .offset = 65536));
	close_logged(fd);
}

static void polled(void)
{
	int ends[2];
	if (pipe(ends))
		truth_die("pipe");
	struct job ready =
		job("IOCB_CMD_POLL", 5, ends[1], NULL, 0, 0, X(.fd = ends[1], .not_storage = 1));
	ready.iocb.aio_buf = POLLOUT;
	one(ready);
	T(close, X(.fd = ends[0], .not_storage = 1), ends[0]);
	T(close, X(.fd = ends[1], .not_storage = 1), ends[1]);
}

/* A context that goes while something waits in it: its end cannot be seen. */
static void destroyed(const char *path)
{
	int ends[2];
	int fd = open(path, O_RDONLY);
	aio_context_t other = 0;
	if (pipe(ends) || fd < 0 || syscall(SYS_io_setup, 4, &other))
		truth_die("second context");
	struct job waits = job("", 5, ends[0], NULL, 0, 0, X());
	waits.iocb.aio_buf = POLLIN;
	struct iocb *pointer = &waits.iocb;
	if (syscall(SYS_io_submit, other, 1L, &pointer) != 1 || syscall(SYS_io_destroy, other))
		truth_die("io_destroy");
	printf("unseen %llu\n", waits.iocb.aio_data);
}

/* Takes completions out of the ring in memory, as some programs do, and leaves
 * the last one there. */
static void from_memory(const char *path)
{
	struct ring {
		unsigned id, nr, head, tail, magic, compat, incompat, bytes;
		struct io_event events[];
	} *volatile ring = (struct ring *)context;
	int fd = open(path, O_RDONLY);
	for (int i = 0; i < 200; i++) {
		struct job made = PREAD(fd, 10 + (unsigned)i, i);
		struct iocb *pointer = &made.iocb;
		if (syscall(SYS_io_submit, context, 1L, &pointer) != 1)
			truth_die("io_submit");
		while (*(volatile unsigned *)&ring->head == *(volatile unsigned *)&ring->tail)
			;
		if (ring->events[ring->head].obj != (unsigned long)pointer)
			truth_die("another completion");
		printf("memory %llu %lld\n", made.iocb.aio_data, ring->events[ring->head].res);
		if (i < 199)
			ring->head = (ring->head + 1) % ring->nr;
	}
}

int main(int argc, char **argv)
{
	if (argc != 2 || posix_memalign((void **)&buffer, 4096, 65536))
		truth_die("usage: aio DIR");
	memset(buffer, 3, 65536);
	if (syscall(SYS_io_setup, 64, &context))
		truth_die("io_setup");
	const char *path = text("%s/buffered", argv[1]), *other = text("%s/direct", argv[1]);
	truth_begin();
	buffered(path);
	direct(other);
	polled();
	truth_end();
	destroyed(path);
	from_memory(path);
	return 0;
}
