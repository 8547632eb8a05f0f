/* Visit counters in a mapped file; they are saved after every hundred visits. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
	int fd = open("counters.bin", O_RDWR);
	if (fd < 0) {
		perror("counters.bin");
		return 1;
	}
	off_t size = lseek(fd, 0, SEEK_END);
	unsigned long *c = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	unsigned long x = 3, n = size / sizeof *c;
	for (int v = 1; v <= 12000; v++) {
		x = x * 6364136223846793005ul + 1442695040888963407ul;
		c[(x >> 20) % n]++;
		if (v % 100 == 0 && msync(c, size, MS_SYNC)) {
			perror("msync");
			return 1;
		}
	}
	return 0;
}
