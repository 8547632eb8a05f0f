/* Stores uploads: each is written without a name, made durable, and only then gets its name. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UPLOADS 120

static int write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t w = write(fd, p, n);
		if (w < 0)
			return -1;
		p += w;
		n -= w;
	}
	return 0;
}

static int store(int dir, const char *name, const char *data, size_t n)
{
	char self[64];
	int fd = openat(dir, ".", O_TMPFILE | O_WRONLY, 0644);

	if (fd < 0)
		return -1;
	if (posix_fallocate(fd, 0, n) || write_all(fd, data, n) || fsync(fd)) {
		close(fd);
		return -1;
	}
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW)) {
		close(fd);
		return -1;
	}
	close(fd);
	/* the sender hears "stored" after this */
	return fsync(dir);
}

int main(void)
{
	size_t max = 2 << 20;
	char *data = malloc(max), name[32];
	int top = open(".", O_RDONLY | O_DIRECTORY);

	if (mkdir("uploads", 0755) || top < 0 || fsync(top)) {
		perror("uploads");
		return 1;
	}
	int dir = open("uploads", O_RDONLY | O_DIRECTORY);
	if (dir < 0 || !data) {
		perror("uploads");
		return 1;
	}
	for (int i = 0; i < UPLOADS; i++) {
		size_t n = 300000 + i * 7919 % 1500000;
		memset(data, 'a' + i % 26, n);
		snprintf(name, sizeof name, "upload-%04d", i);
		if (store(dir, name, data, n)) {
			perror(name);
			return 1;
		}
	}
	printf("%d uploads\n", UPLOADS);
	return 0;
}
