/* A program and what may become of it: reads DIR/in, writes DIR/out.
 *
 *   regress DIR same     as it is
 *   regress DIR fsync    makes every write durable
 *   regress DIR buffer   reads with a smaller buffer
 *   regress DIR twice    opens its input twice
 *
 * The same calls are made in every run of a mode.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int must(int result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
	return result;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: regress DIR same|fsync|buffer|twice\n");
		return 2;
	}
	const char *mode = argv[2];
	char path[4096], buffer[16384];

	snprintf(path, sizeof path, "%s/in", argv[1]);
	if (strcmp(mode, "twice") == 0)
		must(close(must(open(path, O_RDONLY), "open")), "close");
	int in = must(open(path, O_RDONLY), "open");
	snprintf(path, sizeof path, "%s/out", argv[1]);
	int out = must(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644), "open");

	size_t step = strcmp(mode, "buffer") == 0 ? 1024 : sizeof buffer;
	while (must(read(in, buffer, step), "read") > 0)
		;
	for (int i = 0; i < 64; i++) {
		must(write(out, buffer, 4096), "write");
		if (strcmp(mode, "fsync") == 0)
			must(fsync(out), "fsync");
	}
	must(close(in), "close");
	must(close(out), "close");
	return 0;
}
