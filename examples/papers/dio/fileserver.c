/*
 * The file server of Filebench, as far as its calls go: threads that create and write, append,
 * read, look at and remove files, in a loop. Usage:
 *
 *     fileserver DIR THREADS OPERATIONS [RATE]
 *
 * Each thread makes OPERATIONS calls; all of them together at most RATE per second. Prints
 * calls, seconds, reads, the calls of the first thread (the truth that a recording must show), and
 * its processor time in seconds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 64, SIZE = 128 << 10, BLOCK = 16 << 10 };

struct thread {
	pthread_t id;
	int number;
	unsigned int seed;
	long calls, reads, limit;
};

static const char *dir;
static double rate;
static pthread_barrier_t ready;
static char content[SIZE];

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Waits until the next call is due. Returns whether there is one. */
static int due(struct thread *thread, double start)
{
	if (thread->calls >= thread->limit)
		return 0;
	double at = rate > 0 ? start + (double)thread->calls / rate : 0;
	/* Sleeps of a millisecond: many more wake-ups would be a load of their own. */
	while (rate > 0 && now() < at)
		usleep(1000);
	thread->calls++;
	return 1;
}

static void check(long result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
}

static void *serve(void *argument)
{
	struct thread *thread = argument;
	char path[4096], buffer[BLOCK];
	struct stat status;
	int fd, file = 0;
	/* A filter of names can choose one of them. */
	snprintf(path, sizeof path, "server-%d", thread->number);
	pthread_setname_np(pthread_self(), path);
	pthread_barrier_wait(&ready);
	double start = now();
	for (;; file = rand_r(&thread->seed) % FILES) {
		snprintf(path, sizeof path, "%s/%d-%d", dir, thread->number, file);
		/* A new file, written from end to end. */
		if (!due(thread, start))
			break;
		check(fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644), path);
		for (int at = 0; at < SIZE && due(thread, start); at += BLOCK)
			check(write(fd, content + at, BLOCK), "write");
		if (due(thread, start))
			check(lseek(fd, 0, SEEK_SET), "lseek");
		while (due(thread, start)) {
			long got = read(fd, buffer, BLOCK);
			check(got, "read");
			thread->reads++;
			if (got == 0)
				break;
		}
		if (due(thread, start))
			check(fstat(fd, &status), "fstat");
		/* The last close is not in the count if none is due, so it is left to the exit. */
		if (!due(thread, start))
			break;
		check(close(fd), "close");
		if (!due(thread, start))
			break;
		check(fd = open(path, O_WRONLY | O_APPEND), path);
		if (due(thread, start))
			check(write(fd, content, BLOCK), "append");
		if (!due(thread, start))
			break;
		check(close(fd), "close");
		if (due(thread, start))
			check(stat(path, &status), "stat");
		if (due(thread, start))
			check(unlink(path), "unlink");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return fprintf(stderr, "usage: fileserver DIR THREADS OPERATIONS [RATE]\n"), 2;
	int threads = atoi(argv[2]);
	long calls = 0, reads = 0;
	struct thread *all = calloc((size_t)threads, sizeof *all);
	dir = argv[1];
	memset(content, 'x', sizeof content);
	rate = argc > 4 ? atof(argv[4]) / threads : 0;
	pthread_barrier_init(&ready, NULL, (unsigned int)threads + 1);
	for (int i = 0; i < threads; i++) {
		all[i] = (struct thread){ .number = i,
					  .seed = (unsigned int)i,
					  .limit = atol(argv[3]) };
		check(-pthread_create(&all[i].id, NULL, serve, &all[i]), "pthread_create");
	}
	pthread_barrier_wait(&ready);
	double start = now();
	for (int i = 0; i < threads; i++) {
		pthread_join(all[i].id, NULL);
		calls += all[i].calls;
		reads += all[i].reads;
	}
	double seconds = now() - start;
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	printf("%ld,%.6f,%ld,%ld,%.6f\n", calls, seconds, reads, all[0].calls,
	       (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
	return 0;
}
