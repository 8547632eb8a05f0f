/*
 * Calls of which few are slow, fail or wait. Usage: tail DIR: reads 4 KiB of a file in memory
 * 20,000 times, then all of it 20 times, opens a file that is not there 7 times, reads from
 * a descriptor for writing 5 times, and waits 3 times for a lock that another process keeps
 * for 50 ms. `tail DIR SECONDS` reads for so long instead, and prints how often.
 */
#include "truth.h"

#include <sys/file.h>
#include <sys/wait.h>

enum { SMALL = 4096, LARGE = 8 << 20 };

static void wait_for_lock(const char *path)
{
	int ready[2];
	char byte = 0;
	if (pipe(ready))
		truth_die("pipe");
	pid_t holder = fork();
	int fd = open(path, O_RDWR);
	if (holder < 0 || fd < 0)
		truth_die(path);
	if (!holder) {
		if (flock(fd, LOCK_EX) || write(ready[1], &byte, 1) != 1)
			truth_die("flock");
		usleep(50000);
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1 || flock(fd, LOCK_EX))
		truth_die("flock");
	waitpid(holder, NULL, 0);
	close(fd);
	close(ready[0]);
	close(ready[1]);
}

int main(int argc, char **argv)
{
	static char bytes[LARGE], path[PATH_MAX];
	if (argc < 2)
		truth_die("usage: tail DIR [SECONDS]");
	snprintf(path, sizeof path, "%s/read", argv[1]);
	int fd = open(path, O_RDWR | O_CREAT, 0644);
	memset(bytes, 1, sizeof bytes);
	if (fd < 0 || pwrite(fd, bytes, LARGE, 0) != LARGE)
		truth_die(path);
	if (argc > 2) {
		long calls = 0;
		for (time_t end = time(NULL) + atol(argv[2]); time(NULL) < end; calls++)
			if (pread(fd, bytes, 16, 0) != 16)
				truth_die("pread");
		printf("%ld\n", calls);
		return 0;
	}
	for (int i = 0; i < 20000; i++)
		if (pread(fd, bytes, SMALL, 0) != SMALL)
			truth_die("pread");
	for (int i = 0; i < 20; i++)
		if (pread(fd, bytes, LARGE, 0) != LARGE)
			truth_die("pread");
	snprintf(path, sizeof path, "%s/missing", argv[1]);
	for (int i = 0; i < 7; i++)
		if (open(path, O_RDONLY) >= 0)
			truth_die(path);
	snprintf(path, sizeof path, "%s/written", argv[1]);
	int out = open(path, O_WRONLY | O_CREAT, 0644);
	for (int i = 0; i < 5; i++)
		if (pread(out, bytes, SMALL, 0) >= 0)
			truth_die(path);
	for (int i = 0; i < 3; i++)
		wait_for_lock(path);
	return 0;
}
