/*
 * Ways to use an io_uring that need a test of their own. Usage:
 * uring_ways WAY FILE [COUNT]; FILE exists and has at least 1 MiB.
 *   sqpoll    the kernel's thread submits COUNT reads, of a descriptor and of a
 *             registered file in turn
 *   threads   four threads, each with a ring, COUNT reads each
 *   overflow  more completions than their ring has room for
 *   skip      successful completions are left out
 *   pending   ends with a read of a pipe that nobody writes
 *   flood     waits for a line on standard input, then makes COUNT reads of 16
 *             bytes, prints "done"
 * Each prints a line a read: offset and size, in order of submission.
 */
#include "uring.h"

#include <pthread.h>

#define BATCH 8

static char buffer[65536];
static int file;
static unsigned count;

static struct entry read_at(unsigned i)
{
	return (struct entry){ 22,
			       .fd = file,
			       .addr = (unsigned long)buffer,
			       .len = 512 + i % 7,
			       .off = i * 997ULL % 1000000,
			       .user_data = i };
}

enum { ANY = -4000 };

static void expect(struct ring *ring, long res)
{
	struct completion c;
	while (!ring_take(ring, &c))
		syscall(SYS_io_uring_enter, ring->fd, 0, 1, ENTER_GETEVENTS, NULL, 0L);
	if (res == ANY ? c.res < 0 : c.res != res) {
		errno = -c.res;
		truth_die("completion");
	}
}

static void sqpoll(void)
{
	struct ring ring;
	ring_make(&ring, BATCH, SETUP_SQPOLL);
	if (syscall(SYS_io_uring_register, ring.fd, 2, &file, 1))
		truth_die("register");
	for (unsigned i = 0; i < count; i++) {
		struct entry entry = read_at(i);
		if (i & 1) {
			entry.fd = 0;
			entry.flags = FIXED_FILE;
		}
		ring_put(&ring, entry);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (__atomic_load_n(ring.sq_flags, __ATOMIC_RELAXED) & SQ_NEED_WAKEUP)
			syscall(SYS_io_uring_enter, ring.fd, 0, 0, ENTER_SQ_WAKEUP, NULL, 0L);
		expect(&ring, entry.len);
		printf("%llu %u\n", entry.off, entry.len);
	}
}

static void *reader(void *unused)
{
	struct ring ring;
	ring_make(&ring, BATCH, 0);
	for (unsigned i = 0; i < count; i++) {
		ring_put(&ring, read_at(i));
		if (ring.queued < BATCH && i + 1 < count)
			continue;
		unsigned n = ring.queued;
		ring_enter(&ring, n);
		while (n--)
			expect(&ring, ANY);
	}
	return unused;
}

static void threads(void)
{
	pthread_t ids[4];
	for (int i = 0; i < 4; i++)
		if (pthread_create(&ids[i], NULL, reader, NULL))
			truth_die("pthread_create");
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
}

static void overflow(void)
{
	struct ring ring;
	struct ring_params params = { .flags = SETUP_CQSIZE, .cq_entries = BATCH };
	int fd = (int)syscall(SYS_io_uring_setup, BATCH, &params);
	ring_map(&ring, fd, &params);
	for (unsigned i = 0; i < count; i++) {
		struct entry entry = read_at(i);
		ring_put(&ring, entry);
		ring_enter(&ring, 0);
		printf("%llu %u\n", entry.off, entry.len);
	}
	for (unsigned i = 0; i < count; i++)
		expect(&ring, ANY);
}

static void skip(void)
{
	struct ring ring;
	ring_make(&ring, BATCH, 0);
	for (unsigned i = 0; i < count; i++) {
		struct entry entry = read_at(i);
		entry.flags = CQE_SKIP;
		ring_put(&ring, entry);
		ring_enter(&ring, 0);
		printf("%llu %u\n", entry.off, entry.len);
	}
	/* A failure is not left out. */
	struct entry last = read_at(0);
	last.addr = 8;
	last.flags = CQE_SKIP;
	ring_put(&ring, last);
	ring_enter(&ring, 1);
	expect(&ring, -EFAULT);
	printf("%llu %u\n", last.off, last.len);
}

static void pending(void)
{
	struct ring ring;
	int ends[2];
	ring_make(&ring, BATCH, 0);
	if (pipe(ends))
		truth_die("pipe");
	file = ends[0];
	ring_put(&ring, read_at(0));
	ring_enter(&ring, 0);
	printf("waits\n");
	fflush(stdout);
	pause();
}

static void flood(void)
{
	struct ring ring;
	char line;
	ring_make(&ring, BATCH, 0);
	printf("ready\n");
	fflush(stdout);
	while (read(0, &line, 1) == 1 && line != '\n')
		;
	for (unsigned i = 0; i < count; i += BATCH) {
		for (unsigned n = 0; n < BATCH; n++) {
			struct entry entry = read_at(0);
			entry.len = 16;
			ring_put(&ring, entry);
		}
		ring_enter(&ring, BATCH);
		for (unsigned n = 0; n < BATCH; n++)
			expect(&ring, 16);
	}
	printf("done\n");
}

int main(int argc, char **argv)
{
	if (argc < 3)
		truth_die("usage: uring_ways WAY FILE [COUNT]");
	file = open(argv[2], O_RDONLY);
	if (file < 0)
		truth_die(argv[2]);
	count = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = { { "sqpoll", sqpoll }, { "threads", threads }, { "overflow", overflow },
		     { "skip", skip },	   { "pending", pending }, { "flood", flood } };
	for (unsigned i = 0; i < sizeof ways / sizeof ways[0]; i++)
		if (!strcmp(argv[1], ways[i].name))
			ways[i].run();
	return 0;
}
