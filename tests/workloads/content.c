/*
 * Calls that move data, and the data that they moved. Usage:
 *   content calls DIR THREADS ROUNDS
 *     each thread makes fixed and random calls on a file of its own, with what
 *     they moved, one call after the other, in TRUTH_DIR/ID.moved
 *   content gone
 *     a write to a pipe whose memory is gone, in part, when it returns
 */
#include "truth.h"

#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define MOVED_BYTES (96L << 20)
#define BUFFER_BYTES (3L << 20)
#define MOST_SEGMENTS 1024

static const char *dir;
static long rounds;

/* Of one thread. */
struct worker {
	unsigned long random;
	char *moved;
	long moved_bytes;
	char *buffer;
	char *edge; /* one page, with nothing behind it */
	char *fresh; /* eight pages that nobody has touched */
	int fd;
};

static unsigned long next(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

/* A size: small and odd, about a piece or a page, or large. */
static long some_size(struct worker *w)
{
	switch (next(w) % 8) {
	case 0:
		return next(w) % 4;
	case 1:
		return 16384 - 40 + next(w) % 80;
	case 2:
		return 4096;
	case 3:
		return next(w) % 200000;
	default:
		return next(w) % 300;
	}
}

/* Notes what a call moved, which stands in the segments. */
static void moved(struct worker *w, long ret, const struct iovec *iov, int count)
{
	for (int i = 0; i < count && ret > 0; i++) {
		long n = (long)iov[i].iov_len < ret ? (long)iov[i].iov_len : ret;
		if (w->moved_bytes + n > MOVED_BYTES)
			truth_die("no room for what was moved");
		memcpy(w->moved + w->moved_bytes, iov[i].iov_base, n);
		w->moved_bytes += n;
		ret -= n;
	}
}

#define MOVED(w, iov, count, ...) moved(w, T(__VA_ARGS__), iov, count)

/* Up to `most` segments, some of them empty, that lie apart in the buffer. */
static int segments(struct worker *w, struct iovec *iov, int most)
{
	int count = 1 + next(w) % most;
	char *at = w->buffer;
	for (int i = 0; i < count; i++) {
		at += next(w) % 50;
		iov[i].iov_base = at;
		iov[i].iov_len = next(w) % 5 ? next(w) % (count < 8 ? 40000 : 300) : 0;
		at += iov[i].iov_len;
	}
	return count;
}

static void refill(struct worker *w)
{
	for (long i = 0; i < BUFFER_BYTES / 8; i++)
		((unsigned long *)w->buffer)[i] = next(w);
}

static void random_call(struct worker *w, struct iovec *iov)
{
	int fd = w->fd;
	long size = some_size(w), offset = next(w) % 500000;
	struct iovec one = { w->buffer + next(w) % 64, size };
	char *at = one.iov_base;
	int count = next(w) % 4 ? 1 + next(w) % 6 : 40;
	count = segments(w, iov, count);
	switch (next(w) % 10) {
	case 0:
		MOVED(w, &one, 1, read, X(.fd = fd, .size = size), fd, at, size);
		break;
	case 1:
		MOVED(w, &one, 1, write, X(.fd = fd, .size = size), fd, at, size);
		break;
	case 2:
		MOVED(w, &one, 1, pread64, X(.fd = fd, .size = size, .offset = offset), fd, at,
		      size, offset);
		break;
	case 3:
		MOVED(w, &one, 1, pwrite64, X(.fd = fd, .size = size, .offset = offset), fd, at,
		      size, offset);
		break;
	case 4:
		MOVED(w, iov, count, readv, X(.fd = fd), fd, iov, count);
		break;
	case 5:
		MOVED(w, iov, count, writev, X(.fd = fd), fd, iov, count);
		break;
	case 6:
		MOVED(w, iov, count, preadv, X(.fd = fd, .offset = offset), fd, iov, count, offset,
		      0L);
		break;
	case 7:
		MOVED(w, iov, count, pwritev, X(.fd = fd, .offset = offset), fd, iov, count, offset,
		      0L);
		break;
	case 8:
		MOVED(w, iov, count, preadv2, X(.fd = fd, .offset = offset), fd, iov, count, offset,
		      0L, 0);
		break;
	default:
		MOVED(w, iov, count, pwritev2, X(.fd = fd, .offset = offset), fd, iov, count,
		      offset, 0L, 0);
	}
}

static void fixed_calls(struct worker *w, struct iovec *iov)
{
	int fd = w->fd;
	struct iovec one = { w->buffer, BUFFER_BYTES };
	/* More than is hashed, and exactly as much. */
	MOVED(w, &one, 1, pwrite64, X(.fd = fd), fd, w->buffer, 1500000L, 0L);
	MOVED(w, &one, 1, pwrite64, X(.fd = fd), fd, w->buffer, 1L << 20, 0L);
	MOVED(w, &one, 1, pread64, X(.fd = fd), fd, w->buffer, (1L << 20) + 1, 0L);
	/* Every length of a tail. */
	for (long size = 1; size < 100; size++)
		MOVED(w, &one, 1, pread64, X(.fd = fd), fd, w->buffer, size, 3 * size);
	for (long size = 16384 - 2; size < 16384 + 3; size++)
		MOVED(w, &one, 1, pwrite64, X(.fd = fd), fd, w->buffer, size, 0L);
	/* Short at the end of the file, and nothing there. */
	T(ftruncate, X(.fd = fd), fd, 100001L);
	MOVED(w, &one, 1, pread64, X(.fd = fd), fd, w->buffer, 5000L, 100000L);
	MOVED(w, &one, 1, pread64, X(.fd = fd), fd, w->buffer, 5000L, 100001L);
	T(pread64, X(.fd = 987), 987, w->buffer, 100L, 0L);

	/* As many segments as there can be, of one byte each. */
	for (int i = 0; i < MOST_SEGMENTS; i++)
		iov[i] = (struct iovec){ w->buffer + 2 * i, 1 };
	MOVED(w, iov, MOST_SEGMENTS, preadv, X(.fd = fd, .size = MOST_SEGMENTS), fd, iov,
	      MOST_SEGMENTS, 5L, 0L);
	MOVED(w, iov, MOST_SEGMENTS, pwritev, X(.fd = fd, .size = MOST_SEGMENTS), fd, iov,
	      MOST_SEGMENTS, 5L, 0L);

	/* Memory that ends: what was moved before counts. */
	char *edge = w->edge, *fresh = w->fresh;
	long page = sysconf(_SC_PAGESIZE);
	memset(edge, 'e', page);
	one = (struct iovec){ edge + page - 77, 77 };
	MOVED(w, &one, 1, pread64, X(.fd = fd), fd, one.iov_base, 1000L, 0L);
	MOVED(w, &one, 1, pwrite64, X(.fd = fd), fd, one.iov_base, 1000L, 0L);
	iov[0] = one;
	iov[1] = (struct iovec){ edge + page, 1000 };
	MOVED(w, iov, 1, pwritev, X(.fd = fd), fd, iov, 2, 0L, 0L);
	T(pread64, X(.fd = fd), fd, 1, 100L, 0L);
	T(pwrite64, X(.fd = fd), fd, 1, 100L, 0L);

	/* Memory that nobody has touched: anonymous, and mapped from a file. */
	char *mapped = (char *)T(mmap, X(.fd = fd), NULL, 8 * page, PROT_READ, MAP_SHARED, fd, 0L);
	if (mapped == MAP_FAILED)
		truth_die("mmap");
	int to = T(openat, X(), AT_FDCWD, text("%s/to-%d", dir, fd), O_RDWR | O_CREAT, 0644);
	one = (struct iovec){ fresh, 4 * page };
	MOVED(w, &one, 1, pwrite64, X(.fd = to), to, fresh, 4 * page, 0L);
	one = (struct iovec){ fresh + 4 * page, 4 * page };
	MOVED(w, &one, 1, pread64, X(.fd = fd), fd, one.iov_base, 4 * page, 0L);
	one = (struct iovec){ mapped, 8 * page };
	MOVED(w, &one, 1, pwrite64, X(.fd = to), to, mapped, 8 * page, 0L);
	T(close, X(.fd = to), to);
}

static void *work(void *argument)
{
	long n = (long)argument;
	struct iovec iov[MOST_SEGMENTS];
	struct worker w = { .random = 88172645463325252UL + n };
	w.moved = malloc(MOVED_BYTES);
	w.buffer = malloc(BUFFER_BYTES);
	long page = sysconf(_SC_PAGESIZE);
	int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
	w.edge = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, anonymous, -1, 0);
	w.fresh = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, anonymous, -1, 0);
	if (!w.moved || !w.buffer || w.fresh == MAP_FAILED || w.edge == MAP_FAILED ||
	    munmap(w.edge + page, page))
		truth_die("memory");
	refill(&w);
	truth_begin();
	const char *path = text("%s/content-%ld", dir, n);
	w.fd = T(openat, X(.arg = path), AT_FDCWD, path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	fixed_calls(&w, iov);
	for (long i = 0; i < rounds; i++) {
		if (i % 50 == 0) {
			refill(&w);
			T(lseek, X(.fd = w.fd), w.fd, 0, SEEK_SET);
		}
		random_call(&w, iov);
	}
	T(close, X(.fd = w.fd), w.fd);
	truth_end();
	FILE *out = fopen(text("%s/%s.moved", getenv("TRUTH_DIR"), truth_current->id), "w");
	if (!out || fwrite(w.moved, 1, w.moved_bytes, out) != (size_t)w.moved_bytes || fclose(out))
		truth_die("moved");
	return NULL;
}

/* Bytes that fill a pipe, and more than fit after them. */
#define PIPE_BYTES 65536L
#define GONE_BYTES (PIPE_BYTES + 4096)

static int ends[2];
static char *gone;

static void *write_all(void *unused)
{
	(void)unused;
	if (write(ends[1], gone, GONE_BYTES) != GONE_BYTES)
		truth_die("write");
	return NULL;
}

static void write_what_goes(void)
{
	static char sink[GONE_BYTES];
	pthread_t writer;
	int waiting = 0;
	gone = mmap(NULL, GONE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (gone == MAP_FAILED || pipe(ends) || pthread_create(&writer, NULL, write_all, NULL))
		truth_die("pipe");
	while (waiting < PIPE_BYTES)
		if (ioctl(ends[0], FIONREAD, &waiting))
			truth_die("FIONREAD");
	/* The kernel has copied it; the writer waits for room for the rest. */
	if (munmap(gone, 4096))
		truth_die("munmap");
	for (long got = 0; got < GONE_BYTES;) {
		long n = read(ends[0], sink, sizeof sink);
		if (n <= 0)
			truth_die("read");
		got += n;
	}
	pthread_join(writer, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "gone")) {
		write_what_goes();
		return 0;
	}
	if (argc != 5 || strcmp(argv[1], "calls"))
		truth_die("usage: content calls DIR THREADS ROUNDS | content gone");
	dir = argv[2];
	long count = atol(argv[3]);
	rounds = atol(argv[4]);
	pthread_t threads[TRUTH_LOGS];
	if (count < 1 || count > TRUTH_LOGS)
		truth_die("THREADS");
	for (long i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			truth_die("pthread_create");
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
