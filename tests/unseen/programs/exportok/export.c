/* Exports a table through gzip over a non-blocking pipe; what the pipe did not take is sent again. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK (128 * 1024)

int main(void)
{
	int p[2];
	if (pipe(p)) {
		perror("pipe");
		return 1;
	}
	pid_t gz = fork();
	if (gz == 0) {
		int out = open("table.gz", O_CREAT | O_TRUNC | O_WRONLY, 0644);
		dup2(p[0], 0);
		dup2(out, 1);
		close(p[0]);
		close(p[1]);
		close(out);
		execlp("gzip", "gzip", "-1", (char *)0);
		_exit(127);
	}
	close(p[0]);
	fcntl(p[1], F_SETFL, O_NONBLOCK);
	int in = open("table.dat", O_RDONLY);
	if (in < 0) {
		perror("table.dat");
		return 1;
	}
	static char buf[BLOCK];
	ssize_t n;
	while ((n = read(in, buf, BLOCK)) > 0)
		for (ssize_t at = 0; at < n;) {
			struct pollfd pf = { p[1], POLLOUT, 0 };
			poll(&pf, 1, -1);
			ssize_t w = write(p[1], buf + at, n - at);
			if (w > 0)
				at += w;
			else if (w < 0 && errno != EAGAIN) {
				perror("write");
				return 1;
			}
		}
	if (n < 0) {
		perror("read");
		return 1;
	}
	close(p[1]);
	int st;
	waitpid(gz, &st, 0);
	return st != 0;
}
