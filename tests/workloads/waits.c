/*
 * Calls that wait, and signals. Usage: waits MODE DIR
 *   fifo      blocks in a read of the FIFO DIR/fifo until killed
 *   flock     blocks in a flock that another descriptor holds until killed
 *   interrupt a read of a FIFO that a signal interrupts, once for good and once
 *             restarted
 *   taken     two reads of the FIFO from a second thread, of 10 and 11 bytes: while
 *             they wait, the descriptor of the first is closed, that of the
 *             second given to another file
 *   count     prints "signal" at each SIGINT and SIGTERM until a line arrives on
 *             standard input, then the number of each
 * Prints "ready" and its thread id before it waits.
 */
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/time.h>

static const char *dir;
static char buffer[64];
static volatile sig_atomic_t interrupts, terminations;

static void ready(void)
{
	printf("ready %d\n", getpid());
	fflush(stdout);
}

static void on_alarm(int number)
{
	(void)number;
}

static void on_signal(int number)
{
	if (number == SIGINT)
		interrupts++;
	else
		terminations++;
	if (write(1, "signal\n", 7) != 7)
		_exit(97);
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	if (sigaction(number, &action, NULL))
		truth_die("sigaction");
}

static void alarm_in_ms(long ms)
{
	struct itimerval timer = { .it_value = { 0, ms * 1000 } };
	if (setitimer(ITIMER_REAL, &timer, NULL))
		truth_die("setitimer");
}

static int open_fifo(void)
{
	const char *path = text("%s/fifo", dir);
	if (mkfifo(path, 0600) && errno != EEXIST)
		truth_die("mkfifo");
	/* Read and write: neither open nor read sees the end of the file. */
	int fd = open(path, O_RDWR);
	if (fd < 0)
		truth_die("fifo");
	return fd;
}

static void interrupt(void)
{
	int fd = open_fifo();
	truth_begin();
	handle(SIGALRM, on_alarm, 0);
	alarm_in_ms(100);
	T(read, X(.fd = fd, .size = 10), fd, buffer, 10);
	/* Restarted by the kernel: it is interrupted until there is data. */
	handle(SIGALRM, on_alarm, SA_RESTART);
	pid_t writer = fork();
	if (writer == 0) {
		usleep(300000);
		if (write(fd, "0123456789", 10) != 10)
			_exit(1);
		_exit(0);
	}
	alarm_in_ms(100);
	T(read, X(.fd = fd, .size = 10), fd, buffer, 10);
	T(close, X(.fd = fd), fd);
	truth_end();
}

struct reader {
	int fd, size;
	pid_t tid;
};

static void *read_once(void *argument)
{
	struct reader *reader = argument;
	__atomic_store_n(&reader->tid, syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	if (read(reader->fd, buffer, reader->size) != reader->size)
		truth_die("read");
	return NULL;
}

/* Until the thread sleeps in read(2), which is number 0. */
static void until_it_reads(const struct reader *reader)
{
	char line[16];
	do {
		usleep(1000);
		pid_t tid = __atomic_load_n(&reader->tid, __ATOMIC_SEQ_CST);
		int fd = open(text("/proc/self/task/%d/syscall", tid), O_RDONLY);
		ssize_t n = fd < 0 ? 0 : pread(fd, line, sizeof(line) - 1, 0);
		line[n < 0 ? 0 : n] = 0;
		close(fd);
	} while (strncmp(line, "0 ", 2));
}

static void taken(void)
{
	int other = open(text("%s/other", dir), O_RDWR | O_CREAT, 0600);
	int end = open_fifo();
	for (int size = 10; size < 12; size++) {
		struct reader reader = { .fd = dup(end), .size = size };
		pthread_t thread;
		if (pthread_create(&thread, NULL, read_once, &reader))
			truth_die("thread");
		until_it_reads(&reader);
		if (size == 10 ? close(reader.fd) : dup2(other, reader.fd) < 0)
			truth_die("descriptor");
		if (write(end, "0123456789a", size) != size || pthread_join(thread, NULL))
			truth_die("write");
	}
}

int main(int argc, char **argv)
{
	if (argc != 3)
		truth_die("usage: waits MODE DIR");
	dir = argv[2];
	if (!strcmp(argv[1], "fifo")) {
		int fd = open_fifo();
		ready();
		if (read(fd, buffer, 33) < 0)
			return 1;
	} else if (!strcmp(argv[1], "flock")) {
		const char *path = text("%s/locked", dir);
		int holder = open(path, O_RDWR | O_CREAT, 0600), waiter = open(path, O_RDWR);
		if (holder < 0 || waiter < 0 || flock(holder, LOCK_EX))
			truth_die("flock");
		ready();
		if (flock(waiter, LOCK_EX))
			return 1;
	} else if (!strcmp(argv[1], "interrupt")) {
		interrupt();
	} else if (!strcmp(argv[1], "taken")) {
		taken();
	} else if (!strcmp(argv[1], "count")) {
		handle(SIGINT, on_signal, SA_RESTART);
		handle(SIGTERM, on_signal, SA_RESTART);
		ready();
		while (read(0, buffer, 1) == 1 && buffer[0] != '\n')
			;
		printf("%d %d\n", (int)interrupts, (int)terminations);
	} else {
		truth_die(argv[1]);
	}
	return 0;
}
