/*
 * Compares the clocks of two emulated machines by memory that both have, without fathom and without
 * their network: each writes its CLOCK_MONOTONIC to its place again and again and reads the place of
 * the other one. A value that was read is past on the other machine, so
 * the other clock shows at least that value. Of every 10 ms the best of these bounds is kept.
 *
 * clock MEMORY OWN-PLACE FILE: until SIGTERM, then writes lines "own-ns other-ns" to FILE: when the
 * own clock shows the first, the other one shows at least the second.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define BUCKET 10000000
#define MOST 100000

static volatile sig_atomic_t ended;
static struct {
	int64_t own, other;
} bounds[MOST];

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	struct sched_param none = { 0 };
	struct timespec pause = { .tv_nsec = 2000000 };
	volatile int64_t *own, *other;
	int64_t start, at, value;
	size_t count = 0;
	char *memory;
	FILE *file;
	int fd;

	if (argc != 4 || (fd = open(argv[1], O_RDWR)) < 0)
		return 2;
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED || signal(SIGTERM, end) == SIG_ERR)
		return 2;
	/* In different lines of the cache. */
	own = (int64_t *)(memory + 256 * (atoi(argv[2]) & 1));
	other = (int64_t *)(memory + 256 * (~atoi(argv[2]) & 1));
	/* While nothing else wants to run. */
	sched_setscheduler(0, SCHED_IDLE, &none);
	while (!ended && count < MOST) {
		start = now();
		do {
			*own = now();
			value = *other;
			at = now();
			if (!value)
				continue;
			if (!count || at / BUCKET != bounds[count - 1].own / BUCKET) {
				if (count == MOST)
					break;
				count++;
			} else if (value - at <= bounds[count - 1].other - bounds[count - 1].own) {
				continue;
			}
			bounds[count - 1].own = at;
			bounds[count - 1].other = value;
		} while (at - start < 1000000);
		nanosleep(&pause, NULL);
	}
	file = fopen(argv[3], "w");
	if (!file)
		return 2;
	for (size_t n = 0; n < count; n++)
		fprintf(file, "%lld %lld\n", (long long)bounds[n].own, (long long)bounds[n].other);
	return fclose(file) ? 2 : 0;
}
