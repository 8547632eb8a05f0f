/*
 * I/O whose place the kernel chooses, by many threads, each called io-THREAD. Each write is one
 * line of 20 bytes or more: the thread, the number of the write, and blanks; so the file tells
 * where it went. Reads tell it on standard output: thread, number of the read, offset.
 * Usage: positions MODE DIR THREADS CALLS
 *   own         each thread opens the file with O_APPEND for each line and closes it
 *   description all use one descriptor with O_APPEND
 *   position    all use one descriptor without O_APPEND
 *   pwrite      each has a descriptor with O_APPEND and uses pwrite at 0
 *   flag        each has a descriptor without O_APPEND and uses pwritev2 with RWF_APPEND
 *   reads       all read one descriptor of the file `numbers`, which has its own offset in each
 *               16 bytes
 * Meanwhile one more thread opens a file of its own, writes to it, syncs and closes it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RWF_APPEND
#define RWF_APPEND 0x10
#endif

static const char *mode, *dir;
static long calls;
static int shared_fd;
static volatile int over;
static char path[4096];
static pthread_barrier_t together;

static void die(const char *what)
{
	fprintf(stderr, "positions: %s: %s\n", what, strerror(errno));
	exit(99);
}

static int open_log(int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0644);
	if (fd < 0)
		die(path);
	return fd;
}

static void read_numbers(long thread)
{
	char piece[512];
	long *seen = calloc((size_t)calls, sizeof *seen);
	if (!seen)
		die("calloc");
	pthread_barrier_wait(&together);
	for (long i = 0; i < calls; i++) {
		if (read(shared_fd, piece, sizeof piece) != sizeof piece)
			die("read");
		seen[i] = atol(piece);
	}
	for (long i = 0; i < calls; i++)
		printf("%ld %ld %ld\n", thread, i, seen[i]);
	free(seen);
}

static void *append(void *argument)
{
	long thread = (long)argument;
	char name[16];
	snprintf(name, sizeof name, "io-%ld", thread);
	pthread_setname_np(pthread_self(), name);
	if (!strcmp(mode, "reads")) {
		read_numbers(thread);
		return NULL;
	}
	char line[256];
	int own = !strcmp(mode, "own"), flag = !strcmp(mode, "flag");
	int positional = flag || !strcmp(mode, "pwrite");
	int fd = positional ? open_log(flag ? 0 : O_APPEND) : shared_fd;
	pthread_barrier_wait(&together);
	for (long i = 0; i < calls; i++) {
		int length = 20 + (int)((thread * 7 + i * 13) % 80);
		memset(line, ' ', sizeof line);
		line[sprintf(line, "%ld %ld", thread, i)] = ' ';
		line[length - 1] = '\n';
		if (own)
			fd = open_log(O_APPEND);
		struct iovec vector = { line, (size_t)length };
		ssize_t written = flag	       ? pwritev2(fd, &vector, 1, 0, RWF_APPEND)
				  : positional ? pwrite(fd, line, (size_t)length, 0)
					       : write(fd, line, (size_t)length);
		if (written != length)
			die("write");
		if (own)
			close(fd);
	}
	return NULL;
}

static void *disturb(void *unused)
{
	char other[4200];
	(void)unused;
	snprintf(other, sizeof other, "%s/other", dir);
	while (!over) {
		int fd = open(other, O_WRONLY | O_CREAT, 0644);
		if (fd < 0 || write(fd, "other", 5) != 5 || fsync(fd) || close(fd))
			die(other);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		die("usage: positions MODE DIR THREADS CALLS");
	mode = argv[1];
	dir = argv[2];
	long count = atol(argv[3]);
	calls = atol(argv[4]);
	if (!strcmp(mode, "reads")) {
		snprintf(path, sizeof path, "%s/numbers", dir);
		FILE *numbers = fopen(path, "w");
		for (long i = 0; numbers && i < count * calls * 32; i++)
			fprintf(numbers, "%015ld\n", i * 16);
		if (!numbers || fclose(numbers) || (shared_fd = open(path, O_RDONLY)) < 0)
			die(path);
	} else {
		snprintf(path, sizeof path, "%s/log", dir);
		shared_fd = open_log(strcmp(mode, "position") ? O_APPEND : 0);
	}
	pthread_t threads[64], other;
	if (count < 1 || count > 64)
		die("THREADS");
	pthread_barrier_init(&together, NULL, (unsigned)count);
	if (pthread_create(&other, NULL, disturb, NULL))
		die("pthread_create");
	for (long i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, append, (void *)i))
			die("pthread_create");
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	over = 1;
	pthread_join(other, NULL);
	return 0;
}
