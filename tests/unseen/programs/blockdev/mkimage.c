/* Writes a disk image past the page cache: every extent is a header and its data. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA (256 * 1024)

static int direct, plain;

static void put(const void *p, size_t n, off_t at)
{
	ssize_t w = pwrite(direct, p, n, at);
	if (w < 0 && errno == EINVAL)
		w = pwrite(plain, p, n, at);
	if (w != (ssize_t)n) {
		perror("write");
		exit(1);
	}
}

int main(void)
{
	char *data;
	struct {
		char magic[8];
		unsigned no, len;
		char pad[48];
	} head = { "EXTENT", 0, DATA, "" };
	if (posix_memalign((void **)&data, 4096, DATA))
		return 1;
	direct = open("disk.img", O_CREAT | O_TRUNC | O_WRONLY | O_DIRECT, 0644);
	plain = open("disk.img", O_WRONLY);
	if (direct < 0 || plain < 0) {
		perror("disk.img");
		return 1;
	}
	off_t at = 0;
	for (unsigned i = 0; i < 900; i++) {
		head.no = i;
		memset(data, i, DATA);
		put(&head, sizeof head, at);
		at += sizeof head;
		put(data, DATA, at);
		at += DATA;
	}
	if (fsync(plain)) {
		perror("fsync");
		return 1;
	}
	int d = open(".", O_RDONLY);
	fsync(d);
	return 0;
}
