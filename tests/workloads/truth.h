/*
 * Ground truth: a program makes its calls through T(), which logs what the call
 * was given and what it returned. Each thread that logs does so between
 * truth_begin() and truth_end(); both make a call with a path that occurs
 * nowhere else, so that a recording can be cut to exactly the calls between
 * them. truth_end() writes the log, one JSON object a line, into the directory
 * named by TRUTH_DIR.
 *
 * Calls go through syscall(2): libc would replace some of them by others.
 */
#ifndef TRUTH_H
#define TRUTH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* Values of members of struct expect: the row's column is not checked, or it
 * must be null. */
#define UNSET (LONG_MIN + 11)
#define NONE (LONG_MIN + 12)
#define NO_TEXT ((const char *)1)

/* What the row of a call must say. */
struct expect {
	long fd, size, offset, dev, ino, bytes;
	const char *path, *path2, *arg, *arg2, *flags, *args;
	/* Of operations: column op_flags, and user_data. */
	const char *op_flags;
	long user_data;
	/* The descriptor is a socket, a pipe or anonymous: a recording of
	 * storage calls leaves the call out. */
	int not_storage;
};

/* X(.fd = 3, .size = 10): an expectation; members left out are not checked. */
#define X(...)                                                                                     \
	((struct expect){ .fd = UNSET,                                                             \
			  .size = UNSET,                                                           \
			  .offset = UNSET,                                                         \
			  .dev = UNSET,                                                            \
			  .ino = UNSET,                                                            \
			  .bytes = UNSET,                                                          \
			  .user_data = UNSET,                                                      \
			  __VA_ARGS__ })

struct truth_entry {
	const char *name;
	long ret;
	struct expect x;
};

#define TRUTH_LOGS 40
#define TRUTH_ENTRIES 20000
#define TRUTH_FDS 1024
#define TRUTH_TEXT (8 << 20)

struct truth_log {
	unsigned count;
	char id[64];
	struct truth_entry entries[TRUTH_ENTRIES];
};

/* Static, so that logging makes no calls of its own. */
static struct truth_log truth_logs[TRUTH_LOGS];
static unsigned truth_logs_used;
static unsigned truth_sequence;
static __thread struct truth_log *truth_current;
static struct {
	long dev, ino;
	const char *path;
} truth_fds[TRUTH_FDS];
static char truth_text[TRUTH_TEXT];
static size_t truth_text_used;

__attribute__((unused, noreturn)) static void truth_die(const char *what)
{
	fprintf(stderr, "workload: %s: %s\n", what, strerror(errno));
	exit(99);
}

/* Text that stays valid until the log is written. */
__attribute__((unused, format(printf, 1, 2))) static const char *text(const char *format, ...)
{
	va_list args;
	char buffer[PATH_MAX + 256];
	va_start(args, format);
	int length = vsnprintf(buffer, sizeof buffer, format, args);
	va_end(args);
	size_t at = __atomic_fetch_add(&truth_text_used, (size_t)length + 1, __ATOMIC_RELAXED);
	if (length < 0 || (size_t)length >= sizeof buffer || at + (size_t)length + 1 > TRUTH_TEXT)
		truth_die("text does not fit");
	memcpy(truth_text + at, buffer, (size_t)length + 1);
	return truth_text + at;
}

/* What is known of the file behind the descriptor. */
__attribute__((unused)) static void truth_identity(struct expect *x)
{
	if (x->fd >= 0 && x->fd < TRUTH_FDS && truth_fds[x->fd].path) {
		if (x->dev == UNSET)
			x->dev = truth_fds[x->fd].dev;
		if (x->ino == UNSET)
			x->ino = truth_fds[x->fd].ino;
		if (!x->path)
			x->path = truth_fds[x->fd].path;
	}
}

/* Logs what was not made by truth_call: an operation and its result. */
__attribute__((unused)) static void truth_note(const char *name, struct expect x, long ret)
{
	struct truth_log *log = truth_current;
	if (!log || log->count == TRUTH_ENTRIES) {
		errno = ENOBUFS;
		truth_die("no room in the log");
	}
	struct truth_entry *entry = &log->entries[log->count++];
	entry->name = name;
	entry->ret = ret;
	entry->x = x;
}

__attribute__((unused)) static long truth_call(const char *name, long number, struct expect x,
					       long a, long b, long c, long d, long e, long f)
{
	/* Before the call: after a close another thread may get the number. */
	truth_identity(&x);
	long ret = syscall(number, a, b, c, d, e, f);
	int error = errno;
	truth_note(name, x, ret == -1 ? -error : ret);
	errno = error;
	return ret;
}

#define TRUTH_ARG(x) ((long)(x))
#define TRUTH_6(name, x, a, b, c, d, e, f, ...)                                                    \
	truth_call(#name, SYS_##name, x, TRUTH_ARG(a), TRUTH_ARG(b), TRUTH_ARG(c), TRUTH_ARG(d),   \
		   TRUTH_ARG(e), TRUTH_ARG(f))
/* T(pread64, X(.fd = fd, ...), fd, buffer, size, offset): makes a call and logs
 * it; returns what syscall(2) returns. */
#define T(name, ...) TRUTH_6(name, __VA_ARGS__, 0, 0, 0, 0, 0, 0)

/* Learns the identity of an open file with an fstat that is logged as well:
 * later calls on `fd`, and the call that opened it when that was the last one,
 * must show it. `path` is absolute; NO_TEXT: not known. */
__attribute__((unused)) static int ident(int fd, const char *path)
{
	struct stat st;
	if (fd < 0 || fd >= TRUTH_FDS)
		truth_die("ident: no descriptor");
	struct truth_log *log = truth_current;
	struct truth_entry *opened = log->count && log->entries[log->count - 1].ret == fd
					     ? &log->entries[log->count - 1]
					     : NULL;
	T(fstat, X(.fd = fd), fd, &st);
	struct truth_entry *stated = &log->entries[log->count - 1];
	truth_fds[fd].dev = (long)st.st_dev;
	truth_fds[fd].ino = (long)st.st_ino;
	truth_fds[fd].path = path;
	stated->x.dev = (long)st.st_dev;
	stated->x.ino = (long)st.st_ino;
	stated->x.path = path;
	if (opened) {
		opened->x.dev = (long)st.st_dev;
		opened->x.ino = (long)st.st_ino;
		if (!opened->x.path)
			opened->x.path = path;
	}
	return fd;
}

/* The descriptor was closed, or its path is different from now on. */
__attribute__((unused)) static void set_path(int fd, const char *path)
{
	truth_fds[fd].path = path;
}

/* Closes, logged. */
__attribute__((unused)) static void close_logged(int fd)
{
	long dev = truth_fds[fd].dev, ino = truth_fds[fd].ino;
	const char *path = truth_fds[fd].path;
	truth_fds[fd].path = NULL;
	if (path)
		T(close, X(.fd = fd, .dev = dev, .ino = ino, .path = path), fd);
	else
		T(close, X(.fd = fd), fd);
}

__attribute__((unused)) static void truth_marker(const char *which)
{
	char path[128];
	snprintf(path, sizeof path, "/fathom-truth/%s/%s", which, truth_current->id);
	syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
}

/* Starts the log of this thread. After fork, the child must call it anew. */
__attribute__((unused)) static void truth_begin(void)
{
	if (!truth_current) {
		unsigned n = __atomic_fetch_add(&truth_logs_used, 1, __ATOMIC_RELAXED);
		if (n >= TRUTH_LOGS)
			truth_die("too many threads");
		truth_current = &truth_logs[n];
	}
	unsigned n = __atomic_fetch_add(&truth_sequence, 1, __ATOMIC_RELAXED);
	truth_current->count = 0;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(truth_current->id, sizeof truth_current->id, "%d-%d-%u-%ld%09ld", getpid(),
		 (int)syscall(SYS_gettid), n, (long)now.tv_sec, now.tv_nsec);
	truth_marker("begin");
}

__attribute__((unused)) static void truth_number(FILE *out, const char *name, long value)
{
	if (value == NONE)
		fprintf(out, ",\"%s\":null", name);
	else if (value != UNSET)
		fprintf(out, ",\"%s\":%ld", name, value);
}

/* Text as hexadecimal digits: it may hold any byte. */
__attribute__((unused)) static void truth_hex(FILE *out, const char *name, const char *value)
{
	if (!value || value == NO_TEXT)
		return;
	fprintf(out, ",\"%s\":\"", name);
	for (const unsigned char *c = (const unsigned char *)value; *c; c++)
		fprintf(out, "%02x", *c);
	fputc('"', out);
}

/* Ends the log of this thread and writes it. */
__attribute__((unused)) static void truth_end(void)
{
	struct truth_log *log = truth_current;
	truth_marker("end");
	char path[PATH_MAX];
	const char *dir = getenv("TRUTH_DIR");
	snprintf(path, sizeof path, "%s/%s.jsonl", dir ? dir : ".", log->id);
	FILE *out = fopen(path, "w");
	if (!out)
		truth_die(path);
	fprintf(out, "{\"id\":\"%s\",\"pid\":%d,\"tid\":%d}\n", log->id, getpid(),
		(int)syscall(SYS_gettid));
	for (unsigned i = 0; i < log->count; i++) {
		struct truth_entry *e = &log->entries[i];
		fprintf(out, "{\"syscall\":\"%s\",\"ret\":%ld", e->name, e->ret);
		truth_number(out, "fd", e->x.fd);
		truth_number(out, "size", e->x.size);
		truth_number(out, "file_offset", e->x.offset);
		truth_number(out, "dev", e->x.dev);
		truth_number(out, "ino", e->x.ino);
		truth_number(out, "bytes", e->x.bytes);
		truth_hex(out, "path", e->x.path);
		truth_hex(out, "path2", e->x.path2);
		truth_hex(out, "path_arg", e->x.arg);
		truth_hex(out, "path_arg2", e->x.arg2);
		truth_hex(out, "flags", e->x.flags);
		truth_hex(out, "args", e->x.args);
		truth_hex(out, "op_flags", e->x.op_flags);
		truth_number(out, "user_data", e->x.user_data);
		if (e->x.not_storage)
			fprintf(out, ",\"storage\":false");
		fprintf(out, "}\n");
	}
	if (fclose(out))
		truth_die(path);
}

#endif
