/*
 * A producer and a consumer: bytes through a pipe, a Unix socket, and TCP on the loopback
 * interface, in odd sizes. Each end writes a line for each call that moved bytes: its name, the
 * bytes before it in the stream, its bytes. Usage: streams LOG-DIR
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOTAL = 300007 };

static char buffer[70000];

static void die(const char *what)
{
	perror(what);
	exit(99);
}

static FILE *log_of(const char *dir, const char *stream, const char *end)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s-%s", dir, stream, end);
	FILE *log = fopen(path, "w");
	if (!log)
		die(path);
	return log;
}

/* Sends TOTAL bytes by turns of several calls. */
static void produce(int fd, int is_socket, FILE *log)
{
	long at = 0;
	for (int turn = 0; at < TOTAL; turn++) {
		long size = 1 + (turn * 7919L) % 40009;
		if (size > TOTAL - at)
			size = TOTAL - at;
		struct iovec two[2] = { { buffer, size / 3 }, { buffer, size - size / 3 } };
		struct msghdr message = { .msg_iov = two, .msg_iovlen = 2 };
		const char *name;
		long n;
		switch (is_socket ? turn % 4 : turn % 2) {
		case 0:
			name = "write", n = write(fd, buffer, size);
			break;
		case 1:
			name = "writev", n = writev(fd, two, 2);
			break;
		case 2:
			name = "sendto", n = send(fd, buffer, size, 0);
			break;
		default:
			name = "sendmsg", n = sendmsg(fd, &message, 0);
		}
		if (n <= 0)
			die(name);
		fprintf(log, "%s %ld %ld\n", name, at, n);
		at += n;
	}
}

static void consume(int fd, int is_socket, FILE *log)
{
	long at = 0;
	for (int turn = 0;; turn++) {
		long size = 1 + (turn * 104729L) % 30011;
		struct iovec two[2] = { { buffer, size / 2 }, { buffer, size - size / 2 } };
		struct msghdr message = { .msg_iov = two, .msg_iovlen = 2 };
		const char *name;
		long n;
		/* A look does not take the bytes away. */
		if (is_socket && turn % 5 == 4 && (n = recv(fd, buffer, size, MSG_PEEK)) > 0)
			fprintf(log, "recvfrom %ld %ld\n", at, n);
		switch (is_socket ? turn % 4 : turn % 2) {
		case 0:
			name = "read", n = read(fd, buffer, size);
			break;
		case 1:
			name = "readv", n = readv(fd, two, 2);
			break;
		case 2:
			name = "recvfrom", n = recv(fd, buffer, size, 0);
			break;
		default:
			name = "recvmsg", n = recvmsg(fd, &message, 0);
		}
		if (n < 0)
			die(name);
		if (!n)
			break;
		fprintf(log, "%s %ld %ld\n", name, at, n);
		at += n;
	}
	if (at != TOTAL)
		die("bytes are missing");
}

/* Both ends in processes of their own, which have inherited them. */
static void through(const char *dir, const char *stream, int from, int to, int is_socket)
{
	FILE *sent = log_of(dir, stream, "sent"), *received = log_of(dir, stream, "received");
	pid_t child = fork();
	if (!child) {
		close(to);
		consume(from, is_socket, received);
		fclose(received);
		_exit(0);
	}
	close(from);
	produce(to, is_socket, sent);
	fclose(sent);
	if (is_socket && shutdown(to, SHUT_WR))
		die("shutdown");
	close(to);
	int status;
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		die("consumer");
}

int main(int argc, char **argv)
{
	int ends[2], one = 1;
	if (argc != 2)
		return 2;
	if (pipe(ends))
		die("pipe");
	through(argv[1], "pipe", ends[0], ends[1], 0);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		die("socketpair");
	through(argv[1], "unix", ends[0], ends[1], 1);
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	if (server < 0 || client < 0 || bind(server, (struct sockaddr *)&address, length) ||
	    listen(server, 1) || getsockname(server, (struct sockaddr *)&address, &length) ||
	    connect(client, (struct sockaddr *)&address, length))
		die("connect");
	int taken = accept(server, NULL, NULL);
	if (taken < 0 || setsockopt(taken, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one))
		die("accept");
	through(argv[1], "tcp", taken, client, 1);
	return 0;
}
