/* Counts the lines with a word in a big mapped log. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
	int fd = open("big.log", O_RDONLY);
	if (fd < 0) {
		perror("big.log");
		return 1;
	}
	size_t n = lseek(fd, 0, SEEK_END);
	char *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	madvise(p, n, MADV_SEQUENTIAL);
	long lines = 0, hits = 0;
	for (char *l = p, *e; l < p + n; l = e + 1) {
		e = memchr(l, '\n', p + n - l);
		if (!e)
			break;
		lines++;
		if (memmem(l, e - l, "ERROR", 5))
			hits++;
	}
	printf("%ld of %ld lines\n", hits, lines);
	return 0;
}
