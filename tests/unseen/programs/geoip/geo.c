/* Finds the place of visitors' addresses in a big table, straight out of the file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
	int fd = open("geo.db", O_RDONLY);
	if (fd < 0) {
		perror("geo.db");
		return 1;
	}
	off_t records = lseek(fd, 0, SEEK_END) / 512;
	unsigned long x = 99, sum = 0;
	unsigned char rec[512];
	for (int visitor = 0; visitor < 7000; visitor++) {
		x = x * 6364136223846793005ul + 1442695040888963407ul;
		off_t at = (off_t)((x >> 24) % records) * 512;
		if (pread(fd, rec, sizeof rec, at) != sizeof rec) {
			perror("read");
			return 1;
		}
		sum += rec[0] * 256 + rec[1];
	}
	printf("%lu\n", sum);
	return 0;
}
