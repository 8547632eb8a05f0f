/*
 * Many threads. Usage: threads MODE DIR THREADS CALLS
 *   own     each thread works on a file of its own
 *   shared  all read one descriptor to its end, in pieces of 512 bytes
 *   busy    each reads a file of its own with preadv until the file named by
 *           FATHOM_STOP appears; prints how many calls each thread made
 *   late    the same, and as many threads again once the file named by
 *           FATHOM_LATE appears
 */
#include "truth.h"

#include <pthread.h>
#include <sys/uio.h>

static const char *dir;
static long calls;
static int shared_fd;
static pthread_barrier_t together;

static void own(long n)
{
	static __thread char buffer[4096];
	const char *path = text("%s/own-%ld", dir, n);
	int fd = T(openat, X(.arg = path, .path = path), AT_FDCWD, path, O_RDWR | O_CREAT, 0644);
	/* Threads share the table of descriptors, and each has its own entry. */
	ident(fd, path);
	long end = 0;
	for (long i = 0; i < calls; i++) {
		long size = 1 + (i * 37 + n) % 4096;
		T(write, X(.fd = fd, .size = size, .offset = end), fd, buffer, size);
		end += size;
		T(pread64, X(.fd = fd, .size = size, .offset = end / 2), fd, buffer, size, end / 2);
	}
	T(fdatasync, X(.fd = fd), fd);
	close_logged(fd);
	T(unlinkat, X(.arg = path), AT_FDCWD, path, 0);
}

static void shared(void)
{
	static __thread char buffer[512];
	while (T(read, X(.fd = shared_fd, .size = 512), shared_fd, buffer, 512) > 0)
		;
}

static void busy(long n)
{
	static __thread char buffer[4096];
	struct iovec vector = { buffer, sizeof buffer };
	const char *stop = getenv("FATHOM_STOP");
	const char *path = text("%s/busy-%ld", dir, n);
	int fd = open(path, O_RDWR | O_CREAT, 0644);
	if (fd < 0 || !stop || pwrite(fd, buffer, sizeof buffer, 0) != sizeof buffer)
		truth_die("busy");
	long made = 0;
	while (access(stop, F_OK)) {
		for (int i = 0; i < 100; i++, made++)
			if (syscall(SYS_preadv, fd, &vector, 1, 0L, 0L) != sizeof buffer)
				truth_die("preadv");
	}
	close(fd);
	printf("%d %ld\n", (int)syscall(SYS_gettid), made);
}

static const char *mode;

static void *run(void *argument)
{
	long n = (long)argument;
	pthread_barrier_wait(&together);
	if (!strcmp(mode, "busy") || !strcmp(mode, "late")) {
		busy(n);
		return NULL;
	}
	truth_begin();
	if (!strcmp(mode, "own"))
		own(n);
	else
		shared();
	truth_end();
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		truth_die("usage: threads MODE DIR THREADS CALLS");
	mode = argv[1];
	dir = argv[2];
	long count = atol(argv[3]);
	calls = atol(argv[4]);
	long groups = strcmp(mode, "late") ? 1 : 2;
	if (count < 1 || count * groups > TRUTH_LOGS)
		truth_die("THREADS");
	if (!strcmp(mode, "shared")) {
		shared_fd = open(text("%s/shared", dir), O_RDONLY);
		if (shared_fd < 0)
			truth_die("shared");
	}
	pthread_t threads[TRUTH_LOGS];
	pthread_barrier_init(&together, NULL, (unsigned)count);
	for (long group = 0; group < groups; group++) {
		const char *late = getenv("FATHOM_LATE");
		while (group && late && access(late, F_OK))
			usleep(1000);
		for (long i = 0; i < count; i++)
			if (pthread_create(&threads[group * count + i], NULL, run,
					   (void *)(group * count + i)))
				truth_die("pthread_create");
	}
	for (long i = 0; i < count * groups; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
