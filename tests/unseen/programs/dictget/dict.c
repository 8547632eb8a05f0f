/* Translates a text with a dictionary file of fixed-size entries. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {
	char word[32], meaning[224];
};

static int fd;
static long entries;

static void get(long i, struct entry *e)
{
	if (lseek(fd, i * (off_t)sizeof *e, SEEK_SET) < 0 || read(fd, e, sizeof *e) != sizeof *e) {
		perror("dict.db");
		exit(1);
	}
}

int main(void)
{
	fd = open("dict.db", O_RDONLY);
	if (fd < 0) {
		perror("dict.db");
		return 1;
	}
	entries = lseek(fd, 0, SEEK_END) / sizeof(struct entry);
	unsigned long x = 42, sum = 0;
	struct entry e;
	for (int w = 0; w < 260000; w++) {
		x = x * 6364136223846793005ul + 1442695040888963407ul;
		get((x >> 33) % entries, &e);
		for (size_t i = 0; i < sizeof e; i++)
			sum = sum * 31 + ((unsigned char *)&e)[i];
	}
	printf("%lx\n", sum);
	return 0;
}
