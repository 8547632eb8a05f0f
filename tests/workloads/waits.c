/*
 * Calls that wait, and signals. Usage: waits MODE DIR
 *   fifo      blocks in a read of the FIFO DIR/fifo until killed
 *   flock     blocks in a flock that another descriptor holds until killed
 *   interrupt a read of a FIFO that a signal interrupts, once for good and once
 *             restarted
 *   taken     two reads of the FIFO from a second thread, of 10 and 11 bytes: while
 *             they wait, the descriptor of the first is closed, that of the
 *             second given to another file
 *   before    three threads wait: one in a read of 10 bytes from the FIFO, one for
 *             a lock on DIR/locked, one in a read of 11 bytes from the FIFO
 *             DIR/silent, which never gets any. Prints "ready" and the id of each;
 *             a line on standard input gives the first two what they wait for,
 *             the next one ends it
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

static int open_fifo(const char *name)
{
	const char *path = text("%s/%s", dir, name);
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
	int fd = open_fifo("fifo");
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

/* Until the thread sleeps in call `number`. */
static void until_it_waits(const pid_t *thread, long number)
{
	char line[32], start[32];
	snprintf(start, sizeof(start), "%ld ", number);
	do {
		usleep(1000);
		pid_t tid = __atomic_load_n(thread, __ATOMIC_SEQ_CST);
		int fd = open(text("/proc/self/task/%d/syscall", tid), O_RDONLY);
		ssize_t n = fd < 0 ? 0 : pread(fd, line, sizeof(line) - 1, 0);
		line[n < 0 ? 0 : n] = 0;
		close(fd);
	} while (strncmp(line, start, strlen(start)));
}

static void taken(void)
{
	int other = open(text("%s/other", dir), O_RDWR | O_CREAT, 0600);
	int end = open_fifo("fifo");
	for (int size = 10; size < 12; size++) {
		struct reader reader = { .fd = dup(end), .size = size };
		pthread_t thread;
		if (pthread_create(&thread, NULL, read_once, &reader))
			truth_die("thread");
		until_it_waits(&reader.tid, SYS_read);
		if (size == 10 ? close(reader.fd) : dup2(other, reader.fd) < 0)
			truth_die("descriptor");
		if (write(end, "0123456789a", size) != size || pthread_join(thread, NULL))
			truth_die("write");
	}
}

struct locker {
	int fd;
	pid_t tid;
};

static void *lock_once(void *argument)
{
	struct locker *locker = argument;
	__atomic_store_n(&locker->tid, syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	if (flock(locker->fd, LOCK_EX))
		truth_die("flock");
	return NULL;
}

static void await_line(void)
{
	while (read(0, buffer, 1) == 1 && buffer[0] != '\n')
		;
}

static void before(void)
{
	const char *path = text("%s/locked", dir);
	int holder = open(path, O_RDWR | O_CREAT, 0600);
	struct locker locker = { .fd = open(path, O_RDWR) };
	struct reader reader = { .fd = open_fifo("fifo"), .size = 10 };
	struct reader silent = { .fd = open_fifo("silent"), .size = 11 };
	pthread_t threads[3];
	if (holder < 0 || locker.fd < 0 || flock(holder, LOCK_EX))
		truth_die("flock");
	if (pthread_create(&threads[0], NULL, read_once, &reader) ||
	    pthread_create(&threads[1], NULL, lock_once, &locker) ||
	    pthread_create(&threads[2], NULL, read_once, &silent))
		truth_die("thread");
	until_it_waits(&reader.tid, SYS_read);
	until_it_waits(&locker.tid, SYS_flock);
	until_it_waits(&silent.tid, SYS_read);
	printf("ready %d %d %d\n", reader.tid, locker.tid, silent.tid);
	fflush(stdout);
	await_line();
	if (write(reader.fd, "0123456789", 10) != 10 || flock(holder, LOCK_UN))
		truth_die("release");
	if (pthread_join(threads[0], NULL) || pthread_join(threads[1], NULL))
		truth_die("join");
	printf("released\n");
	fflush(stdout);
	await_line();
}

int main(int argc, char **argv)
{
	if (argc != 3)
		truth_die("usage: waits MODE DIR");
	dir = argv[2];
	if (!strcmp(argv[1], "fifo")) {
		int fd = open_fifo("fifo");
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
	} else if (!strcmp(argv[1], "before")) {
		before();
	} else if (!strcmp(argv[1], "count")) {
		handle(SIGINT, on_signal, SA_RESTART);
		handle(SIGTERM, on_signal, SA_RESTART);
		ready();
		await_line();
		printf("%d %d\n", (int)interrupts, (int)terminations);
	} else {
		truth_die(argv[1]);
	}
	return 0;
}
