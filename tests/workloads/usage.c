/*
 * Reads and writes files in every way that the kernel accounts, in a window: before and
 * after it prints /proc/self/io and getrusage's page faults. What the window needs beside
 * files (memory of its own, libc's functions) is touched before.
 *
 *     usage DIRECTORY
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 300, MAPPED = 48 };

static char buffer[PAGES * PAGE] __attribute__((aligned(PAGE)));
static char text[2][4096];
static struct rusage usage[2];

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static int must_open(const char *name, int flags)
{
	int fd = open(name, flags, 0600);
	must(fd >= 0, name);
	return fd;
}

/* Reads /proc/self/io; the calls that do so are in the window, all but the first open. */
static void reading(int which)
{
	int fd = must_open("/proc/self/io", O_RDONLY);
	ssize_t bytes = read(fd, text[which], sizeof(text[which]) - 1);

	must(bytes > 0, "/proc/self/io");
	text[which][bytes] = 0;
	close(fd);
	must(!getrusage(RUSAGE_SELF, &usage[which]), "getrusage");
}

static void forget(int fd)
{
	must(!fdatasync(fd), "fdatasync");
	must(!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "posix_fadvise");
}

/* With so many pages mapped and touched, `to` through a private file of its own. */
static void work(int from, int to, int direct, volatile char *shared, int pages)
{
	struct iovec parts[] = { { buffer, 5000 }, { buffer + 5000, 3000 } };
	off_t at = 100;

	must(pread(from, buffer, 9000, 50) == 9000, "pread");
	must(read(from, buffer, 777) == 777, "read");
	must(readv(from, parts, 2) == 8000, "readv");
	must(preadv(from, parts, 2, 4000) == 8000, "preadv");
	must(pread(direct, buffer, 16 * PAGE, 64 * PAGE) == 16 * PAGE, "direct");
	must(pread(from, buffer, 10, (off_t)1 << 40) == 0, "pread behind the end");
	must(pread(-1, buffer, 10, 0) < 0 && errno == EBADF, "pread of nothing");
	must(write(to, buffer, 1234) == 1234, "write");
	must(pwrite(to, buffer, 4321, 8000) == 4321, "pwrite");
	must(writev(to, parts, 2) == 8000, "writev");
	must(pwritev(to, parts, 2, 99) == 8000, "pwritev");
	must(sendfile(to, from, &at, 10000) == 10000, "sendfile");
	at = 0;
	must(syscall(SYS_copy_file_range, from, &at, to, NULL, (size_t)20000, 0) == 20000,
	     "copy_file_range");
	for (int page = 0; page < pages; page++)
		if (page % 3)
			buffer[page] = shared[page * PAGE];
		else
			shared[page * PAGE] = 1;
}

int main(int argc, char **argv)
{
	int from, to, direct;
	volatile char *shared;

	must(argc == 2 && !chdir(argv[1]), "usage: usage DIRECTORY");
	memset(buffer, 7, sizeof(buffer));
	memset(text, 1, sizeof(text));
	from = must_open("usage.from", O_CREAT | O_TRUNC | O_RDWR);
	must(write(from, buffer, sizeof(buffer)) == sizeof(buffer), "write");
	to = must_open("usage.to", O_CREAT | O_TRUNC | O_RDWR);
	must(lseek(from, 0, SEEK_SET) == 0, "lseek");
	forget(from);
	direct = must_open("usage.from", O_RDONLY | O_DIRECT);
	shared = mmap(NULL, MAPPED * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, from, 200 * PAGE);
	must(shared != MAP_FAILED, "mmap");
	must(!madvise((void *)shared, MAPPED * PAGE, MADV_RANDOM), "madvise");
	/* Once in vain, so that nothing but files is new in the window. */
	reading(0);
	work(from, to, direct, shared, 0);
	reading(1);
	must(lseek(from, 0, SEEK_SET) == 0 && !ftruncate(to, 0) && lseek(to, 0, SEEK_SET) == 0,
	     "lseek");
	forget(from);

	reading(0);
	work(from, to, direct, shared, MAPPED);
	reading(1);

	for (int which = 0; which < 2; which++)
		printf("%sminor_faults: %ld\nmajor_faults: %ld\n", text[which],
		       usage[which].ru_minflt, usage[which].ru_majflt);
	return 0;
}
