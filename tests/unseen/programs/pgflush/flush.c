/* Writes a table segment: write-back is started early with sync_file_range, made durable once at the end with fsync. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE (1 << 20)
#define PAGES 960

int main(void)
{
	static char page[PAGE];
	int fd = open("segment.0", O_CREAT | O_TRUNC | O_WRONLY, 0644), dir = open(".", O_RDONLY);
	if (fd < 0 || dir < 0 || posix_fallocate(fd, 0, (off_t)PAGE * PAGES)) {
		perror("segment.0");
		return 1;
	}
	for (int i = 0; i < PAGES; i++) {
		memset(page, i, PAGE);
		if (pwrite(fd, page, PAGE, (off_t)i * PAGE) != PAGE) {
			perror("write");
			return 1;
		}
		if (i % 16 == 15)
			sync_file_range(fd, (off_t)(i - 15) * PAGE, 16l * PAGE,
					SYNC_FILE_RANGE_WRITE);
	}
	if (fsync(fd) || fsync(dir)) {
		perror("fsync");
		return 1;
	}
	return close(fd);
}
