/* Stores price ticks in blocks; the header says how many blocks there are. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct header {
	char magic[8];
	unsigned long blocks, first, last;
	char names[4096 - 32];
};
struct tick {
	unsigned long time;
	double price;
};

int main(void)
{
	static struct header h = { "TICKS01", 0, 0, 0, "EURUSD GBPUSD USDJPY" };
	static struct tick block[1024];
	int fd = open("ticks.dat", O_CREAT | O_TRUNC | O_RDWR, 0644);
	if (fd < 0) {
		perror("ticks.dat");
		return 1;
	}
	unsigned long t = 1700000000;
	for (int b = 0; b < 16000; b++) {
		for (int i = 0; i < 1024; i++) {
			block[i].time = t++;
			block[i].price = 1.0 + (t * 2654435761u % 1000) / 1e5;
		}
		if (pwrite(fd, block, sizeof block, 4096 + (off_t)b * sizeof block) !=
		    sizeof block) {
			perror("write");
			return 1;
		}
		h.blocks = b + 1;
		h.last = t;
		if (pwrite(fd, &h, sizeof h, 0) != sizeof h) {
			perror("header");
			return 1;
		}
	}
	if (close(fd)) {
		perror("close");
		return 1;
	}
	return 0;
}
