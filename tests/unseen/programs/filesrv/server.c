/* A file server on the loopback: sends each requested file with sendfile until it is complete. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void client(struct sockaddr_in *a)
{
	static char buf[1 << 18];
	unsigned long sum = 0;
	for (int i = 0; i < 20; i++) {
		int s = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(s, (struct sockaddr *)a, sizeof *a))
			_exit(1);
		char req[32] = { 0 };
		snprintf(req, sizeof req, "www/file%02d.bin", i);
		if (write(s, req, sizeof req) != sizeof req)
			_exit(1);
		ssize_t n;
		while ((n = read(s, buf, sizeof buf)) > 0)
			sum += n;
		close(s);
	}
	_exit(sum == 20ul * (12 << 20) ? 0 : 2);
}

int main(void)
{
	int l = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	if (bind(l, (struct sockaddr *)&a, sizeof a) || listen(l, 8) ||
	    getsockname(l, (struct sockaddr *)&a, &len)) {
		perror("listen");
		return 1;
	}
	pid_t c = fork();
	if (c == 0) {
		close(l);
		client(&a);
	}
	for (int i = 0; i < 20; i++) {
		int s = accept(l, NULL, NULL);
		char req[32];
		size_t have = 0;
		while (have < sizeof req) {
			ssize_t n = read(s, req + have, sizeof req - have);
			if (n <= 0)
				return 1;
			have += n;
		}
		int fd = open(req, O_RDONLY);
		struct stat st;
		if (fd < 0 || fstat(fd, &st)) {
			perror(req);
			return 1;
		}
		off_t at = 0;
		while (at < st.st_size)
			if (sendfile(s, fd, &at, st.st_size - at) < 0) {
				perror("sendfile");
				return 1;
			}
		close(fd);
		close(s);
	}
	int st;
	waitpid(c, &st, 0);
	return st != 0;
}
