/*
 * Calls that cause a known number of page faults, switches and moves to another CPU, while
 * others keep the CPU busy that the caller has left. The calling thread counts with perf
 * events of its own, as `perf stat` does, and prints for each call: its size, by which the
 * test knows it, and by how much page faults, switches, moves and time on the CPU (ns) grew
 * around it. Usage: counters FILE, FILE of 1 MiB at least.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096L
#define COUNTERS 4

static int counters[COUNTERS];
static int pipe_ends[2];
static int first_cpu, other_cpu;
static pid_t reader;
static volatile int over;
/* Calls that the reader has begun. */
static volatile int sleeps;

static void die(const char *what)
{
	fprintf(stderr, "counters: %s: %s\n", what, strerror(errno));
	exit(99);
}

static void open_counters(void)
{
	static const unsigned long kinds[COUNTERS] = {
		PERF_COUNT_SW_PAGE_FAULTS,
		PERF_COUNT_SW_CONTEXT_SWITCHES,
		PERF_COUNT_SW_CPU_MIGRATIONS,
		PERF_COUNT_SW_TASK_CLOCK,
	};
	for (int i = 0; i < COUNTERS; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_SOFTWARE,
			.size = sizeof attr,
			.config = kinds[i],
		};
		counters[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
		if (counters[i] < 0)
			die("perf_event_open");
	}
}

/* Reading these is a call of its own, on no file that storage has. */
static void read_counters(long long values[COUNTERS])
{
	for (int i = 0; i < COUNTERS; i++)
		if (read(counters[i], &values[i], sizeof values[i]) != sizeof values[i])
			die("reading a counter");
}

static void *memory(size_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	return memory;
}

/* Reads `size` bytes, `times` times; a line with what the thread's counters say. */
static void measured(int fd, char *buffer, size_t size, int times)
{
	long long before[COUNTERS], after[COUNTERS];
	/* Touched once: what follows takes no faults of its own. */
	read_counters(before);
	read_counters(after);
	read_counters(before);
	for (int i = 0; i < times; i++) {
		ssize_t n =
			fd == pipe_ends[0] ? read(fd, buffer, size) : pread(fd, buffer, size, 0);
		if (n <= 0)
			die("reading");
	}
	read_counters(after);
	printf("%zu", size);
	for (int i = 0; i < COUNTERS; i++)
		printf(" %lld", after[i] - before[i]);
	printf("\n");
	fflush(stdout);
}

static void stay_on(pid_t tid, int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(tid, sizeof set, &set))
		die("sched_setaffinity");
}

/* Faults and computes on the CPU that the reader leaves. */
static void *busy(void *unused)
{
	(void)unused;
	stay_on(0, first_cpu);
	while (!over) {
		volatile char *bytes = memory(64 * PAGE);
		for (int i = 0; i < 64; i++)
			bytes[i * PAGE] = 1;
		munmap((void *)bytes, 64 * PAGE);
	}
	return NULL;
}

/* Lets the reader sleep, and wakes it; the second time on another CPU. */
static void *waker(void *unused)
{
	(void)unused;
	stay_on(0, other_cpu);
	while (sleeps < 1)
		usleep(1000);
	usleep(200000);
	if (write(pipe_ends[1], "x", 1) != 1)
		die("write");
	while (sleeps < 2)
		usleep(1000);
	usleep(200000);
	stay_on(reader, other_cpu);
	if (write(pipe_ends[1], "x", 1) != 1)
		die("write");
	return NULL;
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
	if (fd < 0)
		die("open");
	setvbuf(stdout, memory(PAGE), _IOFBF, PAGE);
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set))
		die("sched_getaffinity");
	for (first_cpu = 0; !CPU_ISSET(first_cpu, &set);)
		first_cpu++;
	for (other_cpu = first_cpu + 1; other_cpu < CPU_SETSIZE && !CPU_ISSET(other_cpu, &set);)
		other_cpu++;
	if (other_cpu == CPU_SETSIZE)
		other_cpu = first_cpu;
	open_counters();
	char *known = memory(256 * PAGE);
	memset(known, 1, 256 * PAGE);
	/* Into the page cache. */
	if (pread(fd, known, 256 * PAGE, 0) != 256 * PAGE)
		die("pread");

	/* Each page of the buffer is touched first by the kernel. */
	measured(fd, memory(64 * PAGE), 64 * PAGE, 1);
	measured(fd, known, 63 * PAGE, 1);
	measured(fd, known, 60 * PAGE, 4000);

	/* A fault outside of calls. */
	const volatile char *mapped = mmap(NULL, 8 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED || !mapped[5 * PAGE])
		die("mapped file");

	pthread_t threads[2];
	reader = (pid_t)syscall(SYS_gettid);
	if (pipe(pipe_ends))
		die("pipe");
	stay_on(0, first_cpu);
	if (pthread_create(&threads[0], NULL, busy, NULL) ||
	    pthread_create(&threads[1], NULL, waker, NULL))
		die("pthread_create");
	sleeps = 1;
	measured(pipe_ends[0], known, 21, 1);
	sleeps = 2;
	measured(pipe_ends[0], known, 22, 1);
	over = 1;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	printf("%d\n", other_cpu != first_cpu);
	return 0;
}
