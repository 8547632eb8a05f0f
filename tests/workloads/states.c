/*
 * Threads that each wait for one kind of thing. Usage: states DIR
 * Before it ends, each prints a line:
 *   ROLE TID NOW RUN QUEUE VOLUNTARY INVOLUNTARY
 * the time (CLOCK_MONOTONIC), then what the kernel has counted of the thread: nanoseconds on a
 * CPU and in its queue (/proc/thread-self/schedstat), switches (/proc/thread-self/status).
 */
#include "truth.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { ROUNDS = 20 };

static const char *dir;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int turns;
static int pipe_ends[2], unix_ends[2], polled_ends[2], tcp_ends[2];

static void read_all(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, text, size - 1);
	if (n < 0)
		truth_die(path);
	text[n] = 0;
	close(fd);
}

static long line_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	return at ? atol(at + strlen(name)) : -1;
}

struct counts {
	long run, queue, voluntary, involuntary;
};

static void read_counts(struct counts *counts)
{
	char status[8192], schedstat[128];
	read_all("/proc/thread-self/schedstat", schedstat, sizeof(schedstat));
	read_all("/proc/thread-self/status", status, sizeof(status));
	if (sscanf(schedstat, "%ld %ld", &counts->run, &counts->queue) != 2)
		truth_die("schedstat");
	counts->voluntary = line_of(status, "\nvoluntary_ctxt_switches:");
	counts->involuntary = line_of(status, "\nnonvoluntary_ctxt_switches:");
}

static void *told(void *role)
{
	struct timespec now;
	struct counts before, counts;
	/* A thread that was switched meanwhile has counts and a time that do not belong together. */
	read_counts(&counts);
	do {
		before = counts;
		clock_gettime(CLOCK_MONOTONIC, &now);
		read_counts(&counts);
	} while (before.voluntary != counts.voluntary || before.involuntary != counts.involuntary);
	printf("%s %ld %ld %ld %ld %ld %ld\n", (const char *)role, syscall(SYS_gettid),
	       now.tv_sec * 1000000000L + now.tv_nsec, counts.run, counts.queue, counts.voluntary,
	       counts.involuntary);
	return NULL;
}

static void doze(long ms)
{
	struct timespec time = { 0, ms * 1000000 };
	nanosleep(&time, NULL);
}

static void *on_condition(void *role)
{
	pthread_mutex_lock(&mutex);
	while (turns < ROUNDS)
		pthread_cond_wait(&turn, &mutex);
	pthread_mutex_unlock(&mutex);
	return told(role);
}

static void *on_pipe(void *role)
{
	char buffer[64];
	while (read(pipe_ends[0], buffer, sizeof(buffer)) > 0)
		;
	return told(role);
}

static void *on_unix(void *role)
{
	char buffer[64];
	while (recv(unix_ends[0], buffer, sizeof(buffer), 0) > 0)
		;
	return told(role);
}

static void *on_tcp(void *role)
{
	char buffer[64];
	while (read(tcp_ends[0], buffer, sizeof(buffer)) > 0)
		;
	return told(role);
}

static void *on_poll(void *role)
{
	char buffer[64];
	struct epoll_event event = { .events = EPOLLIN };
	int poll = epoll_create1(0);
	if (epoll_ctl(poll, EPOLL_CTL_ADD, polled_ends[0], &event))
		truth_die("epoll_ctl");
	do {
		if (epoll_wait(poll, &event, 1, -1) < 0)
			truth_die("epoll_wait");
	} while (read(polled_ends[0], buffer, sizeof(buffer)) > 0);
	return told(role);
}

static void *on_timer(void *role)
{
	for (int i = 0; i < ROUNDS; i++)
		doze(3);
	return told(role);
}

static void *on_lock(void *role)
{
	int fd = open(text("%s/locked", dir), O_RDWR);
	if (flock(fd, LOCK_EX))
		truth_die("flock");
	return told(role);
}

static void *on_child(void *role)
{
	pid_t child = fork();
	if (!child) {
		doze(40);
		_exit(0);
	}
	if (waitpid(child, NULL, 0) != child)
		truth_die("waitpid");
	return told(role);
}

static void *on_cpu(void *role)
{
	struct timespec used;
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	} while (used.tv_nsec < 50000000);
	return told(role);
}

static void *on_disk(void *role)
{
	static char block[65536];
	int fd = open(text("%s/written", dir), O_RDWR | O_CREAT, 0600);
	for (int i = 0; i < ROUNDS; i++)
		if (pwrite(fd, block, sizeof(block), i * sizeof(block)) < 0 || fdatasync(fd))
			truth_die("written");
	return told(role);
}

static void connect_over_tcp(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	tcp_ends[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (void *)&at, length) || listen(listener, 1) ||
	    getsockname(listener, (void *)&at, &length) ||
	    connect(tcp_ends[1], (void *)&at, length))
		truth_die("tcp");
	tcp_ends[0] = accept(listener, NULL, NULL);
	close(listener);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *role;
		void *(*run)(void *);
	} roles[] = {
		{ "futex", on_condition }, { "pipe", on_pipe },	  { "socket", on_unix },
		{ "tcp", on_tcp },	   { "poll", on_poll },	  { "timer", on_timer },
		{ "file_lock", on_lock },  { "child", on_child }, { "cpu", on_cpu },
		{ "disk", on_disk },
	};
	enum { ROLES = sizeof(roles) / sizeof(*roles) };
	pthread_t threads[ROLES];
	if (argc != 2)
		truth_die("usage: states DIR");
	dir = argv[1];
	int holder = open(text("%s/locked", dir), O_RDWR | O_CREAT, 0600);
	if (holder < 0 || flock(holder, LOCK_EX))
		truth_die("flock");
	if (pipe(pipe_ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, unix_ends) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, polled_ends))
		truth_die("pipe");
	connect_over_tcp();
	printf("main %d\n", getpid());
	fflush(stdout);
	for (int i = 0; i < ROLES; i++)
		if (pthread_create(&threads[i], NULL, roles[i].run, (void *)roles[i].role))
			truth_die("thread");
	for (int i = 0; i < ROUNDS; i++) {
		doze(3);
		if (write(pipe_ends[1], "p", 1) != 1 || send(unix_ends[1], "u", 1, 0) != 1 ||
		    write(polled_ends[1], "e", 1) != 1 || send(tcp_ends[1], "t", 1, 0) != 1)
			truth_die("round");
		pthread_mutex_lock(&mutex);
		turns++;
		pthread_cond_broadcast(&turn);
		pthread_mutex_unlock(&mutex);
	}
	close(pipe_ends[1]);
	close(unix_ends[1]);
	close(polled_ends[1]);
	close(tcp_ends[1]);
	flock(holder, LOCK_UN);
	for (int i = 0; i < ROLES; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
