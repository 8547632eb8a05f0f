/* Collects events from a named pipe and appends them to a file in blocks. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void producer(void)
{
	int fd = open("events.fifo", O_WRONLY);
	char msg[512];
	for (int i = 0; i < 120; i++) {
		memset(msg, 'a' + i % 26, sizeof msg);
		msg[511] = '\n';
		if (write(fd, msg, sizeof msg) < 0)
			_exit(1);
		usleep(5000);
	}
	_exit(0);
}

int main(void)
{
	unlink("events.fifo");
	if (mkfifo("events.fifo", 0600)) {
		perror("mkfifo");
		return 1;
	}
	int in = open("events.fifo", O_RDONLY | O_NONBLOCK);
	int out = open("events.dat", O_CREAT | O_TRUNC | O_WRONLY, 0644);
	if (in < 0 || out < 0) {
		perror("open");
		return 1;
	}
	pid_t p = fork();
	if (p == 0)
		producer();
	static char buf[65536];
	size_t have = 0, total = 0;
	while (total < 120 * 512) {
		ssize_t n = read(in, buf + have, sizeof buf - have);
		if (n > 0) {
			have += n;
			total += n;
			if (have == sizeof buf) {
				if (write(out, buf, have) != (ssize_t)have)
					return 1;
				have = 0;
			}
		} else if (n < 0 && errno != EAGAIN) {
			perror("read");
			return 1;
		}
		/* nothing yet: try again */
	}
	if (write(out, buf, have) != (ssize_t)have)
		return 1;
	close(out);
	waitpid(p, NULL, 0);
	unlink("events.fifo");
	return 0;
}
