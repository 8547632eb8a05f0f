/* Cuts a raster (rows of 16 KB) into vertical strips and prints the mean of each. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROW 16384
#define STRIP 4096

int main(void)
{
	int fd = open("raster.bin", O_RDONLY);
	if (fd < 0) {
		perror("raster.bin");
		return 1;
	}
	off_t rows = lseek(fd, 0, SEEK_END) / ROW;
	static unsigned char px[STRIP];
	for (int s = 0; s < ROW / STRIP; s++) {
		double sum = 0;
		for (off_t r = 0; r < rows; r++) {
			if (pread(fd, px, STRIP, r * ROW + s * STRIP) != STRIP) {
				perror("read");
				return 1;
			}
			for (int i = 0; i < STRIP; i++)
				sum += px[i];
		}
		printf("strip %d mean %.3f\n", s, sum / rows / STRIP);
	}
	return 0;
}
