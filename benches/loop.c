/*
 * The measured loops. Usage: loop MODE FILE CALLS THREADS PIN OUT
 *   pread  CALLS preads a thread of 4 KiB of FILE, which is cached
 *   open   CALLS times open, fstat, read of 4 KiB, close a thread
 * PIN is the processor of the first thread, the next ones follow, -1: none.
 * Writes {"calls": all threads, "ns": mean of the threads' wall time, "cpu_ns":
 * mean of their processor time} to OUT.
 * Calls go through syscall(2): libc would choose others.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 64

static const char *file;
static long calls, pin, threads;
static int opens;
static pthread_barrier_t together;
static struct result {
	long calls, ns, cpu_ns;
} results[MOST_THREADS];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static long now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void *run(void *argument)
{
	long n = (long)argument;
	static __thread char buffer[4096];
	struct stat st;
	if (pin >= 0) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET((pin + n) % sysconf(_SC_NPROCESSORS_ONLN), &set);
		if (sched_setaffinity(0, sizeof set, &set))
			die("sched_setaffinity");
	}
	int fd = open(file, O_RDONLY);
	/* Cached before the clock starts; read, which is not what is counted. */
	if (fd < 0 || read(fd, buffer, sizeof buffer) != sizeof buffer)
		die(file);
	pthread_barrier_wait(&together);
	long made = 0, start = now_ns(CLOCK_MONOTONIC);
	long cpu_start = now_ns(CLOCK_THREAD_CPUTIME_ID);
	if (opens) {
		for (long i = 0; i < calls; i++, made += 4) {
			long other = syscall(SYS_openat, AT_FDCWD, file, O_RDONLY);
			if (other < 0 || syscall(SYS_fstat, other, &st) ||
			    syscall(SYS_read, other, buffer, sizeof buffer) != sizeof buffer ||
			    syscall(SYS_close, other))
				die("open loop");
		}
	} else {
		for (; made < calls; made++)
			if (syscall(SYS_pread64, fd, buffer, sizeof buffer, 0L) != sizeof buffer)
				die("pread");
	}
	results[n].cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_start;
	results[n].ns = now_ns(CLOCK_MONOTONIC) - start;
	results[n].calls = made;
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc != 7) {
		fprintf(stderr, "usage: loop pread|open FILE CALLS THREADS PIN OUT\n");
		return 2;
	}
	opens = !strcmp(argv[1], "open");
	file = argv[2];
	calls = atol(argv[3]);
	threads = atol(argv[4]);
	pin = atol(argv[5]);
	if (threads < 1 || threads > MOST_THREADS || (!opens && strcmp(argv[1], "pread")))
		die("arguments");
	pthread_t ids[MOST_THREADS];
	pthread_barrier_init(&together, NULL, (unsigned)threads);
	for (long i = 1; i < threads; i++)
		if (pthread_create(&ids[i], NULL, run, (void *)i))
			die("pthread_create");
	run((void *)0);
	struct result sum = results[0];
	for (long i = 1; i < threads; i++) {
		pthread_join(ids[i], NULL);
		sum.calls += results[i].calls;
		sum.ns += results[i].ns;
		sum.cpu_ns += results[i].cpu_ns;
	}
	FILE *out = fopen(argv[6], "w");
	if (!out)
		die(argv[6]);
	fprintf(out, "{\"calls\": %ld, \"ns\": %ld, \"cpu_ns\": %ld}\n", sum.calls,
		sum.ns / threads, sum.cpu_ns / threads);
	return fclose(out) ? 1 : 0;
}
