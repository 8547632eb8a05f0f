/*
 * Calls for the filters of a recording. Usage: filters MODE DIR [ARGS...]
 *   paths DIR         calls on what lies in DIR/in, beside it, and moves in and
 *                     out; prints a line a call: TAG NAME RESULT. Tags: in (its
 *                     path is in DIR/in), out (elsewhere in DIR), both, none (it
 *                     has no path)
 *   many DIR N        asks for N files in DIR/many that do not exist; tags are even
 *                     and odd
 *   types DIR         opens, describes and closes files of all types; tags are types
 *   slow DIR          a thousand short calls, and one that waits until it has been
 *                     seen to wait for 300 ms
 *   names DIR         a thread takes and is given names; writes to DIR/NAME
 *   users DIR         a process changes its user; writes to DIR/REAL-EFFECTIVE
 *   cgroups DIR FROM TO  moves with a thread from cgroup FROM to TO, which it makes,
 *                     and back; writes to DIR/before, moved, after
 *   threads DIR       two threads write to DIR/TID until DIR/stop is there; prints
 *                     their ids
 *   write FILE        writes once
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *dir;
static char log_text[1 << 20];
static size_t log_used;

static void die(const char *what)
{
	fprintf(stderr, "filters: %s: %s\n", what, strerror(errno));
	exit(99);
}

/* A path that stays valid. */
static const char *in(const char *format, ...)
{
	static char texts[1 << 20];
	static size_t used;
	char *text = texts + used;
	va_list args;
	va_start(args, format);
	int n = sprintf(text, "%s/", dir);
	n += vsprintf(text + n, format, args);
	va_end(args);
	used += (size_t)n + 1;
	return text;
}

static long call(const char *tag, const char *name, long number, long a, long b, long c, long d,
		 long e, long f)
{
	long ret = syscall(number, a, b, c, d, e, f);
	long shown = ret == -1 ? -errno : ret;
	log_used += (size_t)sprintf(log_text + log_used, "%s %s %ld\n", tag, name, shown);
	return ret;
}

#define A(x) ((long)(x))
#define C6(tag, name, a, b, c, d, e, f, ...)                                                       \
	call(tag, #name, SYS_##name, A(a), A(b), A(c), A(d), A(e), A(f))
/* C(tag, call, arguments...) makes a call and logs it. */
#define C(tag, ...) C6(tag, __VA_ARGS__, 0, 0, 0, 0, 0, 0)

/* arm64 has only those of these calls that take a directory. */
#ifdef SYS_stat
#define MKDIR(tag, path, mode) C(tag, mkdir, path, mode)
#define STAT(tag, path, st) C(tag, stat, path, st)
#define LSTAT(tag, path, st) C(tag, lstat, path, st)
#define UNLINK(tag, path) C(tag, unlink, path)
#define RMDIR(tag, path) C(tag, rmdir, path)
#define RENAME(tag, from, to) C(tag, rename, from, to)
#define SYMLINK(tag, target, path) C(tag, symlink, target, path)
#define LINK(tag, from, to) C(tag, link, from, to)
#else
#define MKDIR(tag, path, mode) C(tag, mkdirat, AT_FDCWD, path, mode)
#define STAT(tag, path, st) C(tag, newfstatat, AT_FDCWD, path, st, 0)
#define LSTAT(tag, path, st) C(tag, newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW)
#define UNLINK(tag, path) C(tag, unlinkat, AT_FDCWD, path, 0)
#define RMDIR(tag, path) C(tag, unlinkat, AT_FDCWD, path, AT_REMOVEDIR)
#define RENAME(tag, from, to) C(tag, renameat, AT_FDCWD, from, AT_FDCWD, to)
#define SYMLINK(tag, target, path) C(tag, symlinkat, target, AT_FDCWD, path)
#define LINK(tag, from, to) C(tag, linkat, AT_FDCWD, from, AT_FDCWD, to, 0)
#endif

static int must(long ret)
{
	if (ret < 0)
		die("a call that must succeed");
	return (int)ret;
}

static int opened(const char *tag, int at, const char *path, int flags)
{
	return must(C(tag, openat, at, path, flags, 0644));
}

static void fails(long ret)
{
	if (ret >= 0)
		die("a call that must fail");
}

static void paths(void)
{
	char buffer[4096] = {};
	struct stat st;

	/* Not there at the start; a neighbor whose name only begins alike. */
	must(MKDIR("in", in("in"), 0755));
	must(MKDIR("out", in("index"), 0755));
	must(MKDIR("out", in("out"), 0755));
	int other = opened("out", AT_FDCWD, in("index/f"), O_CREAT | O_RDWR);
	must(C("out", pwrite64, other, buffer, 10, 0));

	int f = opened("in", AT_FDCWD, in("in/f"), O_CREAT | O_RDWR);
	must(C("in", pwrite64, f, buffer, 4096, 0));
	must(C("in", pread64, f, buffer, 100, 0));
	must(C("in", write, f, buffer, 10));
	must(C("in", fstat, f, &st));
	must(C("in", fsync, f));
	must(C("in", truncate, in("in/f"), 4096));
	fails(C("in", getxattr, in("in/f"), "user.none", buffer, 100));

	/* Nothing there. */
	fails(C("in", openat, AT_FDCWD, in("in/none"), O_RDONLY));
	fails(STAT("in", in("in/none"), &st));
	fails(UNLINK("in", in("in/none")));
	fails(STAT("out", in("inn"), &st));
	must(STAT("in", in("in"), &st));
	must(C("in", newfstatat, AT_FDCWD, in("in/"), &st, 0));
	must(C("in", newfstatat, AT_FDCWD, in("/out/.././/in//f"), &st, 0));

	/* Relative to the working directory. */
	must(C("out", chdir, dir));
	int g = opened("in", AT_FDCWD, "in/g", O_CREAT | O_RDWR);
	must(C("in", close, opened("in", AT_FDCWD, "./out/../in/./g", O_RDWR)));
	fails(C("in", openat, AT_FDCWD, "out/../in//missing", O_RDONLY));
	fails(STAT("out", "in/../out/x", &st));
	must(C("in", chdir, "in"));
	must(STAT("in", ".", &st));
	must(STAT("out", "..", &st));
	must(C("in", close, opened("in", AT_FDCWD, "g", O_RDONLY)));
	must(C("out", chdir, ".."));
	fails(C("in", chdir, "in/nope"));

	/* Relative to a descriptor. */
	int d = opened("in", AT_FDCWD, in("in"), O_RDONLY | O_DIRECTORY);
	must(C("in", getdents64, d, buffer, sizeof buffer));
	must(C("in", close, opened("in", d, "g", O_RDONLY)));
	int h = opened("out", d, "../out/h", O_CREAT | O_RDWR);
	must(C("in", mkdirat, d, "sub", 0755));
	fails(C("in", unlinkat, d, "nope", 0));
	must(C("in", newfstatat, d, "", &st, AT_EMPTY_PATH));
	must(C("out", newfstatat, d, "..", &st, 0));
	must(C("in", fchdir, d));
	must(C("out", chdir, dir));

	/* A file moves in and out while it is open. */
	must(C("out", pwrite64, h, buffer, 10, 0));
	must(RENAME("both", in("out/h"), in("in/h")));
	must(C("in", pwrite64, h, buffer, 20, 0));
	must(C("both", renameat, d, "h", AT_FDCWD, "out/h2"));
	must(C("out", pwrite64, h, buffer, 30, 0));
	fails(RENAME("both", in("out/not-there"), in("in/h")));

	/* A directory moves in and out. */
	must(MKDIR("out", in("other"), 0755));
	must(MKDIR("out", in("other/deep"), 0755));
	int deep = opened("out", AT_FDCWD, in("other/deep/file"), O_CREAT | O_RDWR);
	must(C("out", pwrite64, deep, buffer, 10, 0));
	must(RENAME("both", in("other"), in("in/other")));
	must(C("in", pwrite64, deep, buffer, 20, 0));
	must(RENAME("both", in("in/other"), in("other2")));
	must(C("out", pwrite64, deep, buffer, 30, 0));
	must(C("out", close, deep));
	/* The filtered directory itself goes, and comes back. */
	must(RENAME("both", in("in"), in("away")));
	must(C("out", pread64, f, buffer, 30, 0));
	must(RENAME("both", in("away"), in("in")));
	must(C("in", pread64, f, buffer, 40, 0));

	/* Symbolic links: an open goes by the file, others by their argument. */
	must(SYMLINK("out", "in", in("link")));
	must(C("in", close, opened("in", AT_FDCWD, in("link/g"), O_RDONLY)));
	must(STAT("out", in("link/g"), &st));
	fails(C("out", openat, AT_FDCWD, in("link/missing"), O_RDONLY));
	must(SYMLINK("in", in("out"), in("in/away")));
	must(C("out", close, opened("out", AT_FDCWD, in("in/away/h2"), O_RDONLY)));
	must(STAT("in", in("in/away/h2"), &st));

	/* A hard link has the path by which it was reached. */
	must(LINK("both", in("in/g"), in("out/g2")));
	must(C("out", close, opened("out", AT_FDCWD, in("out/g2"), O_RDONLY)));

	/* Two files in one call, duplicates, mappings. */
	must(C("both", copy_file_range, f, NULL, other, NULL, 10, 0));
	must(C("both", sendfile, h, f, NULL, 10));
	must(C("out", sendfile, h, other, NULL, 1));
	int copy = must(C("in", dup, g));
	must(C("in", pwrite64, copy, buffer, 5, 0));
	must(C("in", close, copy));
	void *map = (void *)C("in", mmap, NULL, 4096, PROT_READ, MAP_SHARED, f, 0);
	if (map == MAP_FAILED)
		die("mmap");
	must(C("none", munmap, map, 4096));

	/* Without a file. */
	fails(C("none", pread64, -1, buffer, 10, 0));
	fails(C("none", openat, 999, "in/g", O_RDONLY));
	fails(STAT("none", 8L, &st));
	must(C("none", sync));

	/* Removed: the last name counts. */
	must(UNLINK("in", in("in/g")));
	must(C("in", pwrite64, g, buffer, 6, 0));
	must(C("in", close, g));
	must(RMDIR("in", in("in/sub")));
	must(C("in", close, f));
	must(C("out", close, h));
	must(C("out", close, other));
	must(C("in", close, d));
}

static void many(int count)
{
	struct stat st;
	for (int i = 0; i < count; i++)
		fails(STAT(i % 2 ? "odd" : "even", in("many/%d/x", i), &st));
}

static void types(void)
{
	struct stat st;
	char buffer[64];
	int ends[2];
	if (mkfifo(in("fifo"), 0644) || symlink("nowhere", in("symlink")))
		die(dir);
	int fd = opened("regular", AT_FDCWD, in("regular"), O_CREAT | O_RDWR);
	must(C("regular", pwrite64, fd, buffer, 10, 0));
	must(STAT("regular", in("regular"), &st));
	must(C("regular", close, fd));
	fd = opened("directory", AT_FDCWD, dir, O_RDONLY | O_DIRECTORY);
	must(C("directory", fstat, fd, &st));
	must(STAT("directory", dir, &st));
	must(C("directory", chdir, dir));
	must(C("directory", close, fd));
	fd = opened("fifo", AT_FDCWD, in("fifo"), O_RDWR);
	must(C("fifo", write, fd, buffer, 10));
	must(C("fifo", read, fd, buffer, 10));
	must(STAT("fifo", in("fifo"), &st));
	must(C("fifo", close, fd));
	must(pipe(ends));
	must(C("fifo", close, ends[0]));
	must(C("fifo", close, ends[1]));
	fd = opened("symlink", AT_FDCWD, in("symlink"), O_PATH | O_NOFOLLOW);
	must(LSTAT("symlink", in("symlink"), &st));
	must(C("symlink", close, fd));
	fd = opened("char", AT_FDCWD, "/dev/zero", O_RDWR);
	must(C("char", read, fd, buffer, 10));
	must(C("char", close, fd));
	must((int)syscall(SYS_socketpair, 1, 1, 0, ends));
	must(C("socket", write, ends[0], buffer, 10));
	must(C("socket", read, ends[1], buffer, 10));
	must(C("socket", close, ends[0]));
	must(C("socket", close, ends[1]));
	fd = must((int)syscall(SYS_eventfd2, 1, 0));
	must(C("anonymous", read, fd, buffer, 8));
	must(C("anonymous", close, fd));
	fails(UNLINK("none", in("none")));
	fails(C("none", pread64, -1, buffer, 1, 0));
}

/* Waits until thread `tid` is in call `number`. */
static void until_in_call(int tid, long number)
{
	char path[64], line[64];
	sprintf(path, "/proc/%d/syscall", tid);
	for (;;) {
		FILE *file = fopen(path, "r");
		if (file && fgets(line, sizeof line, file) && atol(line) == number &&
		    line[0] != 'r') {
			fclose(file);
			return;
		}
		if (file)
			fclose(file);
		usleep(1000);
	}
}

static void slow(void)
{
	char buffer[64];
	const char *path = in("locked");
	int ready[2];
	must(pipe(ready));
	pid_t waiter = getpid(), holder = fork();
	if (!holder) {
		int fd = open(path, O_CREAT | O_RDWR, 0644);
		if (flock(fd, LOCK_EX) || write(ready[1], "x", 1) != 1)
			die(path);
		until_in_call(waiter, SYS_flock);
		usleep(300000);
		exit(0);
	}
	if (read(ready[0], buffer, 1) != 1)
		die(path);
	int fd = opened("fast", AT_FDCWD, path, O_RDWR);
	for (int i = 0; i < 1000; i++)
		must(C("fast", pread64, fd, buffer, 10, 0));
	must(C("slow", flock, fd, LOCK_EX));
	must(C("fast", close, fd));
	waitpid(holder, NULL, 0);
}

static void write_to(const char *path)
{
	int fd = open(path, O_CREAT | O_RDWR | O_APPEND, 0666);
	if (fd < 0 || write(fd, "x", 1) != 1 || close(fd))
		die(path);
}

static pthread_barrier_t together;
static volatile int thread_id;

static void meet(void)
{
	pthread_barrier_wait(&together);
}

static void *named(void *unused)
{
	(void)unused;
	thread_id = gettid();
	prctl(PR_SET_NAME, "alpha");
	write_to(in("alpha"));
	prctl(PR_SET_NAME, "beta");
	write_to(in("beta"));
	meet();
	meet();
	write_to(in("alpha2"));
	return NULL;
}

static void names(void)
{
	pthread_t thread;
	pthread_barrier_init(&together, NULL, 2);
	write_to(in("main"));
	if (pthread_create(&thread, NULL, named, NULL))
		die("thread");
	meet();
	char path[64];
	sprintf(path, "/proc/self/task/%d/comm", thread_id);
	int fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "alpha2", 6) != 6 || close(fd))
		die(path);
	meet();
	pthread_join(thread, NULL);
	write_to(in("main"));
}

static void users(void)
{
	write_to(in("0-0"));
	if (!fork()) {
		if (setresuid((uid_t)-1, 65534, (uid_t)-1))
			die("setresuid");
		write_to(in("0-65534"));
		if (setresuid(65534, 65534, (uid_t)-1))
			die("setresuid");
		write_to(in("65534-65534"));
		if (setresuid(0, 0, (uid_t)-1))
			die("setresuid");
		write_to(in("0-0"));
		exit(0);
	}
	wait(NULL);
}

static void move_to(const char *cgroup)
{
	char path[4096];
	sprintf(path, "%s/cgroup.procs", cgroup);
	int fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "0", 1) != 1 || close(fd))
		die(path);
}

static void *moved(void *unused)
{
	(void)unused;
	write_to(in("before"));
	meet();
	meet();
	write_to(in("moved"));
	meet();
	meet();
	write_to(in("after"));
	return NULL;
}

static void cgroups(const char *from, const char *to)
{
	pthread_t thread;
	pthread_barrier_init(&together, NULL, 2);
	if (pthread_create(&thread, NULL, moved, NULL))
		die("thread");
	write_to(in("before"));
	meet();
	mkdir(to, 0755);
	move_to(to);
	write_to(in("moved"));
	if (!fork()) {
		write_to(in("moved"));
		exit(0);
	}
	wait(NULL);
	meet();
	meet();
	move_to(from);
	write_to(in("after"));
	meet();
	pthread_join(thread, NULL);
}

static void *writes(void *unused)
{
	(void)unused;
	const char *path = in("%d", gettid());
	const char *stop = in("stop");
	printf("%d\n", gettid());
	fflush(stdout);
	while (access(stop, F_OK)) {
		write_to(path);
		usleep(1000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: filters MODE DIR [ARGS...]\n");
		return 2;
	}
	const char *mode = argv[1];
	dir = argv[2];
	if (!strcmp(mode, "paths"))
		paths();
	else if (!strcmp(mode, "many") && argc > 3)
		many(atoi(argv[3]));
	else if (!strcmp(mode, "types"))
		types();
	else if (!strcmp(mode, "slow"))
		slow();
	else if (!strcmp(mode, "names"))
		names();
	else if (!strcmp(mode, "users"))
		users();
	else if (!strcmp(mode, "cgroups") && argc > 4)
		cgroups(argv[3], argv[4]);
	else if (!strcmp(mode, "threads")) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, writes, NULL))
			die("thread");
		writes(NULL);
		pthread_join(thread, NULL);
	} else if (!strcmp(mode, "write"))
		write_to(dir);
	else
		return 2;
	if (fwrite(log_text, 1, log_used, stdout) != log_used)
		die("log");
	return 0;
}
