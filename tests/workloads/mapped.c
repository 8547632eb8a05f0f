/*
 * Touches of mapped memory. Usage:
 *   mapped touch DIR      touches mappings of every kind in known ways
 *   mapped flood DIR N    waits for a line on standard input, then takes N times
 *                         PAGES write faults on one shared mapping
 * Each step of `touch` works on a mapping of its own, which stays, and prints one
 * line: name, address and length of the mapping, minor and major faults that
 * getrusage counted while it was touched, then the touched pages in order.
 */
#include "truth.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define PAGES 64
#define PAGE 4096L
#define FLOOD_PAGES 1024

static const char *dir;
static char order[PAGES], used[PAGES];
static int steps;
static struct rusage before, after;
static sigjmp_buf beyond;

static int file(const char *name, int flags)
{
	const char *path = text("%s/%s", dir, name);
	int fd = open(path, O_RDWR | O_CREAT | flags, 0700);
	if (fd < 0)
		truth_die(path);
	return fd;
}

/* A file of PAGES pages of which none is in the page cache. */
static int cold(const char *name)
{
	static char page[PAGE];
	int fd = file(name, 0);
	memset(page, 7, sizeof page);
	for (int i = 0; i < PAGES; i++)
		if (write(fd, page, PAGE) != PAGE)
			truth_die(name);
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		truth_die("fadvise");
	return fd;
}

static volatile char *map(int fd, int pages, int protection, int flags)
{
	char *at = mmap(NULL, pages * PAGE, protection, flags, fd, 0);
	if (at == MAP_FAILED)
		truth_die("mmap");
	return at;
}

static void begin(void)
{
	steps = 0;
	getrusage(RUSAGE_THREAD, &before);
}

static void touched(int page)
{
	used[steps++] = page;
}

static void end(const char *name, volatile char *at, int pages)
{
	getrusage(RUSAGE_THREAD, &after);
	printf("%s %lu %ld %ld %ld", name, (unsigned long)at, pages * PAGE,
	       after.ru_minflt - before.ru_minflt, after.ru_majflt - before.ru_majflt);
	for (int i = 0; i < steps; i++)
		printf(" %d", used[i]);
	printf("\n");
}

static void read_all(volatile char *at)
{
	for (int i = 0; i < PAGES; i++) {
		(void)at[order[i] * PAGE + order[i]];
		touched(order[i]);
	}
}

static void write_all(volatile char *at)
{
	for (int i = 0; i < PAGES; i++) {
		at[order[i] * PAGE + order[i]] = 1;
		touched(order[i]);
	}
}

static void on_bus_error(int number)
{
	(void)number;
	siglongjmp(beyond, 1);
}

static void touch(void)
{
	int rw = PROT_READ | PROT_WRITE;
	/* Each page once, in an order without a pattern. */
	for (int i = 0; i < PAGES; i++)
		order[i] = (i * 37 + 11) % PAGES;
	volatile char *at = map(cold("random"), PAGES, PROT_READ, MAP_SHARED);
	if (madvise((void *)at, PAGES * PAGE, MADV_RANDOM))
		truth_die("madvise");
	begin();
	read_all(at);
	end("read-random", at, PAGES);

	at = map(cold("read"), PAGES, rw, MAP_SHARED);
	begin();
	read_all(at);
	end("read", at, PAGES);
	/* What was read is mapped, but not for writing. */
	begin();
	write_all(at);
	end("write-after-read", at, PAGES);

	int fd = cold("write");
	at = map(fd, PAGES, rw, MAP_SHARED);
	begin();
	write_all(at);
	end("write", at, PAGES);
	if (msync((void *)(at + 8 * PAGE), 16 * PAGE, MS_SYNC) || fsync(fd))
		truth_die("msync");

	at = map(cold("private"), PAGES, rw, MAP_PRIVATE);
	begin();
	write_all(at);
	end("private", at, PAGES);

	fd = memfd_create("shown", 0);
	if (fd < 0 || ftruncate(fd, PAGES * PAGE))
		truth_die("memfd");
	at = map(fd, PAGES, rw, MAP_SHARED);
	begin();
	write_all(at);
	end("memfd", at, PAGES);

	fd = cold("deleted");
	if (unlink(text("%s/deleted", dir)))
		truth_die("unlink");
	at = map(fd, PAGES, rw, MAP_SHARED);
	close(fd);
	begin();
	write_all(at);
	end("deleted", at, PAGES);

	at = map(-1, PAGES, rw, MAP_PRIVATE | MAP_ANONYMOUS);
	begin();
	write_all(at);
	end("anonymous", at, PAGES);
	at = map(-1, PAGES, rw, MAP_SHARED | MAP_ANONYMOUS);
	begin();
	write_all(at);
	end("shared-anonymous", at, PAGES);

	/* The kernel writes to the mapping, in read(2). */
	int zero = open("/dev/zero", O_RDONLY);
	at = map(cold("buffer"), PAGES, rw, MAP_SHARED);
	begin();
	for (int i = 0; i < 8; i++)
		touched(i);
	if (read(zero, (void *)at, 8 * PAGE) != 8 * PAGE)
		truth_die("read");
	end("kernel", at, PAGES);

	/* A file of return instructions. */
	fd = cold("code");
#if defined(__x86_64__)
	static const unsigned char code[] = { 0xc3 };
#elif defined(__aarch64__)
	static const unsigned char code[] = { 0xc0, 0x03, 0x5f, 0xd6 };
#endif
	for (int i = 0; i < PAGES; i++)
		if (pwrite(fd, code, sizeof code, i * PAGE) != sizeof code)
			truth_die("code");
	at = map(fd, PAGES, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	begin();
	for (int i = 0; i < PAGES; i++) {
		((void (*)(void))(at + order[i] * PAGE))();
		touched(order[i]);
	}
	end("exec", at, PAGES);

	struct sigaction action = { .sa_handler = on_bus_error };
	if (sigaction(SIGBUS, &action, NULL))
		truth_die("sigaction");
	at = map(cold("short"), PAGES + 1, rw, MAP_SHARED);
	begin();
	touched(PAGES);
	if (!sigsetjmp(beyond, 1))
		at[PAGES * PAGE + 5] = 1;
	end("beyond", at, PAGES + 1);
}

static void flood(long rounds)
{
	char line;
	int fd = file("flood", O_TRUNC);
	if (ftruncate(fd, FLOOD_PAGES * PAGE))
		truth_die("ftruncate");
	volatile char *at = map(fd, FLOOD_PAGES, PROT_READ | PROT_WRITE, MAP_SHARED);
	printf("ready\n");
	fflush(stdout);
	while (read(0, &line, 1) == 1 && line != '\n')
		;
	for (; rounds > 0; rounds--) {
		for (int i = 0; i < FLOOD_PAGES; i++)
			at[i * PAGE] = 1;
		/* The pages stay in the cache. */
		if (madvise((void *)at, FLOOD_PAGES * PAGE, MADV_DONTNEED))
			truth_die("madvise");
	}
	printf("done\n");
}

int main(int argc, char **argv)
{
	if (argc < 3)
		truth_die("usage: mapped MODE DIR");
	dir = argv[2];
	if (!strcmp(argv[1], "touch"))
		touch();
	else if (!strcmp(argv[1], "flood") && argc == 4)
		flood(atol(argv[3]));
	else
		truth_die(argv[1]);
	return 0;
}
