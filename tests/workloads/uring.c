/*
 * Operations of io_uring, with success and with failure where it can be had.
 * Usage: uring DIR. DIR is empty and on a file system with extended attributes.
 */
#include "uring.h"

#include <linux/openat2.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define BAD_FD 987

static const char *dir;
static char buffer[65536];
static struct ring ring;
static long serial = 1000;

static const char *in_dir(const char *name)
{
	return text("%s/%s", dir, name);
}

static const char *const names[] = {
	[0] = "NOP",
	[1] = "READV",
	[2] = "WRITEV",
	[3] = "FSYNC",
	[4] = "READ_FIXED",
	[5] = "WRITE_FIXED",
	[6] = "POLL_ADD",
	[7] = "POLL_REMOVE",
	[8] = "SYNC_FILE_RANGE",
	[9] = "SENDMSG",
	[10] = "RECVMSG",
	[11] = "TIMEOUT",
	[12] = "TIMEOUT_REMOVE",
	[13] = "ACCEPT",
	[14] = "ASYNC_CANCEL",
	[15] = "LINK_TIMEOUT",
	[16] = "CONNECT",
	[17] = "FALLOCATE",
	[18] = "OPENAT",
	[19] = "CLOSE",
	[20] = "FILES_UPDATE",
	[21] = "STATX",
	[22] = "READ",
	[23] = "WRITE",
	[24] = "FADVISE",
	[25] = "MADVISE",
	[26] = "SEND",
	[27] = "RECV",
	[28] = "OPENAT2",
	[29] = "EPOLL_CTL",
	[30] = "SPLICE",
	[31] = "PROVIDE_BUFFERS",
	[32] = "REMOVE_BUFFERS",
	[33] = "TEE",
	[34] = "SHUTDOWN",
	[35] = "RENAMEAT",
	[36] = "UNLINKAT",
	[37] = "MKDIRAT",
	[38] = "SYMLINKAT",
	[39] = "LINKAT",
	[40] = "MSG_RING",
	[41] = "FSETXATTR",
	[42] = "SETXATTR",
	[43] = "FGETXATTR",
	[44] = "GETXATTR",
	[45] = "SOCKET",
	[49] = "READ_MULTISHOT",
	[54] = "FIXED_FD_INSTALL",
	[55] = "FTRUNCATE",
	[60] = "READV_FIXED",
	[61] = "WRITEV_FIXED",
};
enum {
	NOP = 0,
	READV,
	WRITEV,
	FSYNC,
	READ_FIXED,
	WRITE_FIXED,
	POLL_ADD,
	POLL_REMOVE,
	SYNC_RANGE,
	SENDMSG,
	RECVMSG,
	TIMEOUT,
	TIMEOUT_REMOVE,
	ACCEPT,
	ASYNC_CANCEL,
	LINK_TIMEOUT,
	CONNECT,
	FALLOCATE,
	OPENAT,
	CLOSE,
	FILES_UPDATE,
	STATX,
	READ,
	WRITE,
	FADVISE,
	MADVISE,
	SEND,
	RECV,
	OPENAT2,
	EPOLL_CTL,
	SPLICE,
	PROVIDE_BUFFERS,
	REMOVE_BUFFERS,
	TEE,
	SHUTDOWN,
	RENAMEAT,
	UNLINKAT,
	MKDIRAT,
	SYMLINKAT,
	LINKAT,
	MSG_RING,
	FSETXATTR,
	SETXATTR,
	FGETXATTR,
	GETXATTR,
	SOCKET,
	READ_MULTISHOT = 49,
	FIXED_FD_INSTALL = 54,
	FTRUNCATE = 55,
	READV_FIXED = 60,
	WRITEV_FIXED = 61,
};

static unsigned char supported[256];

/* The operations of one batch, in order of submission. */
static struct {
	struct entry entry;
	struct expect x;
	long ret;
	int done;
} batch[16];
static unsigned batched;

#define E(...) ((struct entry){ __VA_ARGS__ })
#define AT(p) ((unsigned long long)(p))

static void add(struct expect x, struct entry entry)
{
	entry.user_data = (unsigned long long)serial++;
	x.user_data = (long)entry.user_data;
	if (!(entry.flags & FIXED_FILE) && !(entry.opcode == CLOSE && entry.fd_in))
		truth_identity(&x);
	batch[batched].entry = entry;
	batch[batched].x = x;
	batch[batched].done = 0;
	batched++;
	ring_put(&ring, entry);
}

/* Submits the batch, waits for all of it, and logs it in order. */
static void finish(unsigned completions)
{
	unsigned queued = ring.queued;
	ring.queued = 0;
	T(io_uring_enter, X(), ring.fd, queued, completions, ENTER_GETEVENTS, NULL, 0L);
	for (unsigned n = 0; n < completions;) {
		struct completion c;
		if (!ring_take(&ring, &c)) {
			errno = ENODATA;
			truth_die("a completion is missing");
		}
		n++;
		for (unsigned i = 0; i < batched; i++)
			if (batch[i].entry.user_data == c.user_data) {
				batch[i].ret = c.res;
				batch[i].done = 1;
			}
	}
	for (unsigned i = 0; i < batched; i++)
		if (batch[i].done)
			truth_note(text("IORING_OP_%s", names[batch[i].entry.opcode]), batch[i].x,
				   batch[i].ret);
	batched = 0;
}

/* One operation; returns its result. */
static long one(struct expect x, struct entry entry)
{
	if (!supported[entry.opcode])
		return -EOPNOTSUPP;
	add(x, entry);
	finish(1);
	return batch[0].ret;
}

static int new_file(const char *name, long size)
{
	const char *path = in_dir(name);
	int fd = (int)T(openat, X(.arg = path, .path = path), AT_FDCWD, path, O_RDWR | O_CREAT,
			0644);
	ident(fd, path);
	if (size)
		T(pwrite64, X(.fd = fd, .size = size, .offset = 0), fd, buffer, size, 0);
	return fd;
}

static void data_operations(void)
{
	int fd = new_file("data", 10000);
	struct iovec two[2] = { { buffer, 100 }, { buffer + 100, 28 } };
	one(X(.fd = fd, .size = 128, .offset = 50, .op_flags = "0"),
	    E(READV, .fd = fd, .addr = AT(two), .len = 2, .off = 50));
	one(X(.fd = BAD_FD, .ino = NONE), E(READV, .fd = BAD_FD, .addr = AT(two), .len = 2));
	one(X(.fd = fd, .size = 128, .offset = 70),
	    E(WRITEV, .fd = fd, .addr = AT(two), .len = 2, .off = 70));
	one(X(.fd = fd), E(WRITEV, .fd = fd, .addr = AT(two), .len = 5000));
	one(X(.fd = fd, .size = 4096, .offset = 4096),
	    E(READ, .fd = fd, .addr = AT(buffer), .len = 4096, .off = 4096));
	one(X(.fd = fd, .size = 4096, .offset = 9000),
	    E(READ, .fd = fd, .addr = AT(buffer), .len = 4096, .off = 9000));
	one(X(.fd = fd, .size = 4096, .offset = 20000),
	    E(READ, .fd = fd, .addr = AT(buffer), .len = 4096, .off = 20000));
	one(X(.fd = fd, .size = 64), E(READ, .fd = fd, .addr = 8, .len = 64, .off = 0));
	one(X(.fd = BAD_FD, .size = 64, .ino = NONE),
	    E(READ, .fd = BAD_FD, .addr = AT(buffer), .len = 64));
	one(X(.fd = fd, .size = 10, .offset = 5000000000L),
	    E(WRITE, .fd = fd, .addr = AT(buffer), .len = 10, .off = 5000000000ULL));
	one(X(.fd = BAD_FD, .size = 10), E(WRITE, .fd = BAD_FD, .addr = AT(buffer), .len = 10));
	one(X(.fd = fd, .size = 512, .offset = 512, .flags = "RWF_DSYNC"),
	    E(WRITE, .fd = fd, .addr = AT(buffer), .len = 512, .off = 512, .op_flags = 2));
	one(X(.fd = fd, .size = 512, .op_flags = "ASYNC|WORKER", .offset = 1024),
	    E(WRITE, ASYNC, .fd = fd, .addr = AT(buffer), .len = 512, .off = 1024));
	/* Offset -1: at the position of the descriptor. */
	T(lseek, X(.fd = fd), fd, 300, SEEK_SET);
	one(X(.fd = fd, .size = 200, .offset = 300),
	    E(READ, .fd = fd, .addr = AT(buffer), .len = 200, .off = ~0ULL));
	one(X(.fd = fd, .size = 100, .offset = 500),
	    E(WRITE, .fd = fd, .addr = AT(buffer), .len = 100, .off = ~0ULL));
	T(lseek, X(.fd = fd), fd, 0, SEEK_CUR);

	one(X(.fd = fd, .size = NONE, .offset = NONE), E(FSYNC, .fd = fd));
	one(X(.fd = fd, .flags = "IORING_FSYNC_DATASYNC"), E(FSYNC, .fd = fd, .op_flags = 1));
	one(X(.fd = BAD_FD, .ino = NONE), E(FSYNC, .fd = BAD_FD));
	one(X(.fd = fd, .offset = 4096, .size = 4096, .flags = "SYNC_FILE_RANGE_WRITE"),
	    E(SYNC_RANGE, .fd = fd, .off = 4096, .len = 4096, .op_flags = 2));
	one(X(.fd = fd), E(SYNC_RANGE, .fd = fd, .off = ~4ULL, .len = 1));
	one(X(.fd = fd, .offset = 0, .size = 20000, .flags = "0"),
	    E(FALLOCATE, .fd = fd, .off = 0, .addr = 20000));
	one(X(.fd = fd, .offset = 0, .size = 0), E(FALLOCATE, .fd = fd));
	one(X(.fd = fd, .offset = 0, .size = 4096, .args = "advice=POSIX_FADV_WILLNEED"),
	    E(FADVISE, .fd = fd, .len = 4096, .op_flags = POSIX_FADV_WILLNEED));
	one(X(.fd = fd), E(FADVISE, .fd = fd, .op_flags = 99));
	/* A length of more than 32 bits, since 6.10 where `addr` is. */
	one(X(.fd = fd, .offset = 8, .size = 5000000000L),
	    E(FADVISE, .fd = fd, .off = 8, .addr = 5000000000ULL));
	one(X(.fd = fd, .size = NONE, .args = "length=12345"),
	    E(FTRUNCATE, .fd = fd, .off = 12345));
	one(X(.fd = fd), E(FTRUNCATE, .fd = fd, .off = ~0ULL));
	char *map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	truth_note("mmap", X(.fd = -1, .size = 8192), (long)map);
	one(X(.fd = NONE, .size = 8192), E(MADVISE, .addr = AT(map), .len = 8192, .op_flags = 0));
	one(X(.fd = NONE, .size = 8192), E(MADVISE, .addr = AT(map), .len = 8192, .op_flags = 999));

	const char *log = in_dir("log");
	int append = (int)T(openat, X(.arg = log, .path = log), AT_FDCWD, log,
			    O_RDWR | O_CREAT | O_APPEND, 0644);
	ident(append, log);
	T(write, X(.fd = append, .size = 30, .offset = 0), append, buffer, 30);
	one(X(.fd = append, .size = 12, .offset = 30),
	    E(WRITE, .fd = append, .addr = AT(buffer), .len = 12, .off = 5));
	close_logged(append);
	close_logged(fd);
}

static void fixed_operations(void)
{
	int fd = new_file("fixed", 8192);
	const char *path = in_dir("fixed"), *other = in_dir("direct");
	struct iovec registered = { buffer, 32768 };
	int files[8] = { -1, fd, -1, -1, -1, -1, -1, -1 };
	long dev = truth_fds[fd].dev, ino = truth_fds[fd].ino;
	T(io_uring_register, X(), ring.fd, 0, &registered, 1);
	T(io_uring_register, X(), ring.fd, 2, files, 8);
	one(X(.fd = fd, .size = 1000, .offset = 24),
	    E(READ_FIXED, .fd = fd, .addr = AT(buffer), .len = 1000, .off = 24));
	one(X(.fd = fd, .size = 1000),
	    E(READ_FIXED, .fd = fd, .addr = AT(buffer), .len = 1000, .buf_index = 7));
	one(X(.fd = fd, .size = 500, .offset = 600),
	    E(WRITE_FIXED, .fd = fd, .addr = AT(buffer), .len = 500, .off = 600));
	one(X(.fd = fd, .size = 500),
	    E(WRITE_FIXED, .fd = fd, .addr = AT(buffer) + 32700, .len = 500));
	struct iovec inside[2] = { { buffer, 64 }, { buffer + 128, 64 } };
	one(X(.fd = fd, .size = 128, .offset = 10),
	    E(READV_FIXED, .fd = fd, .addr = AT(inside), .len = 2, .off = 10));
	one(X(.fd = fd, .size = 128, .offset = 10),
	    E(WRITEV_FIXED, .fd = fd, .addr = AT(inside), .len = 2, .off = 10));
	/* Registered files: index 1 is the file, 2 nothing. */
	one(X(.fd = 1, .size = 77, .offset = 3, .dev = dev, .ino = ino, .path = path,
	      .op_flags = "FIXED_FILE"),
	    E(READ, FIXED_FILE, .fd = 1, .addr = AT(buffer), .len = 77, .off = 3));
	one(X(.fd = 2, .size = 77, .ino = NONE, .op_flags = "FIXED_FILE"),
	    E(READ, FIXED_FILE, .fd = 2, .addr = AT(buffer), .len = 77, .off = 3));
	/* Open into slot 4, write through it, close it. */
	one(X(.arg = other, .path = other, .flags = "O_RDWR|O_CREAT"),
	    E(OPENAT, .fd = AT_FDCWD, .addr = AT(other), .len = 0600, .op_flags = O_RDWR | O_CREAT,
	      .fd_in = 5));
	one(X(.fd = 4, .size = 99, .offset = 1, .path = other),
	    E(WRITE, FIXED_FILE, .fd = 4, .addr = AT(buffer), .len = 99, .off = 1));
	long got = one(X(.fd = 1, .path = path, .op_flags = "FIXED_FILE"),
		       E(FIXED_FD_INSTALL, FIXED_FILE, .fd = 1));
	if (got >= 0)
		T(close, X(.fd = got, .path = path), got);
	one(X(.fd = 4, .path = other, .op_flags = "FIXED_FILE"), E(CLOSE, .fd_in = 5));
	one(X(.fd = 4, .op_flags = "FIXED_FILE"), E(CLOSE, .fd_in = 5));
	int update[1] = { fd };
	one(X(.fd = NONE), E(FILES_UPDATE, .fd = -1, .addr = AT(update), .len = 1, .off = 3));
	one(X(.fd = NONE), E(FILES_UPDATE, .fd = -1, .addr = AT(update), .len = 1, .off = 300));
	T(io_uring_register, X(), ring.fd, 3, NULL, 0);
	T(io_uring_register, X(), ring.fd, 1, NULL, 0);
	close_logged(fd);
}

static void name_operations(void)
{
	const char *a = in_dir("a"), *b = in_dir("b"), *missing = in_dir("missing/x");
	struct open_how how = { .flags = O_RDWR, .resolve = RESOLVE_NO_SYMLINKS };
	char more[512];
	long fd = one(X(.fd = NONE, .arg = a, .path = a, .flags = "O_RDWR|O_CREAT", .size = NONE),
		      E(OPENAT, .fd = AT_FDCWD, .addr = AT(a), .len = 0640,
			.op_flags = O_RDWR | O_CREAT));
	ident((int)fd, a);
	one(X(.arg = missing), E(OPENAT, .fd = AT_FDCWD, .addr = AT(missing)));
	one(X(), E(OPENAT, .fd = AT_FDCWD, .addr = 1));
	one(X(.fd = fd, .path = a), E(CLOSE, .fd = (int)fd));
	set_path((int)fd, NULL);
	one(X(.fd = BAD_FD), E(CLOSE, .fd = BAD_FD));
	fd = one(X(.arg = a, .path = a),
		 E(OPENAT2, .fd = AT_FDCWD, .addr = AT(a), .off = AT(&how), .len = sizeof how));
	ident((int)fd, a);
	how.resolve = 1ULL << 40;
	one(X(.arg = a),
	    E(OPENAT2, .fd = AT_FDCWD, .addr = AT(a), .off = AT(&how), .len = sizeof how));
	one(X(.fd = NONE, .arg = "a", .path = a),
	    E(STATX, .fd = AT_FDCWD, .addr = AT("a"), .off = AT(more), .len = 0x7ff));
	one(X(.arg = missing),
	    E(STATX, .fd = AT_FDCWD, .addr = AT(missing), .off = AT(more), .len = 0x7ff));
	one(X(.fd = fd, .size = 3),
	    E(FSETXATTR, .fd = (int)fd, .addr = AT("user.a"), .off = AT("abc"), .len = 3));
	one(X(.fd = fd, .size = 3, .flags = "XATTR_CREATE"),
	    E(FSETXATTR, .fd = (int)fd, .addr = AT("user.a"), .off = AT("abc"), .len = 3,
	      .op_flags = 1));
	one(X(.arg = a, .path = a, .size = 3),
	    E(SETXATTR, .addr3 = AT(a), .addr = AT("user.b"), .off = AT("abc"), .len = 3));
	one(X(.arg = missing, .size = 3),
	    E(SETXATTR, .addr3 = AT(missing), .addr = AT("user.b"), .off = AT("abc"), .len = 3));
	one(X(.fd = fd, .size = 100, .args = "name=\"user.a\""),
	    E(FGETXATTR, .fd = (int)fd, .addr = AT("user.a"), .off = AT(more), .len = 100));
	one(X(.fd = fd, .size = 100),
	    E(FGETXATTR, .fd = (int)fd, .addr = AT("user.no"), .off = AT(more), .len = 100));
	one(X(.arg = a, .path = a, .size = 100),
	    E(GETXATTR, .addr3 = AT(a), .addr = AT("user.b"), .off = AT(more), .len = 100));
	one(X(.arg = a, .size = 100),
	    E(GETXATTR, .addr3 = AT(a), .addr = AT("user.no"), .off = AT(more), .len = 100));
	one(X(.arg = a, .arg2 = b, .path2 = b),
	    E(LINKAT, .fd = AT_FDCWD, .addr = AT(a), .len = (unsigned)AT_FDCWD, .off = AT(b)));
	one(X(.arg = a, .arg2 = b, .path2 = b),
	    E(LINKAT, .fd = AT_FDCWD, .addr = AT(a), .len = (unsigned)AT_FDCWD, .off = AT(b)));
	one(X(.arg = b, .path = b, .flags = "0"), E(UNLINKAT, .fd = AT_FDCWD, .addr = AT(b)));
	one(X(.arg = b), E(UNLINKAT, .fd = AT_FDCWD, .addr = AT(b)));
	/* With its name the path of the descriptor changes; Linux 5.10 has no such
	 * operation. */
	long renamed = one(X(.arg = a, .arg2 = b, .path = a, .path2 = b),
			   E(RENAMEAT, .fd = AT_FDCWD, .addr = AT(a), .len = (unsigned)AT_FDCWD,
			     .off = AT(b)));
	const char *named = renamed ? a : b;
	set_path((int)fd, named);
	one(X(.fd = fd, .size = 5, .path = named),
	    E(WRITE, .fd = (int)fd, .addr = AT(buffer), .len = 5));
	one(X(.arg = a, .arg2 = b),
	    E(RENAMEAT, .fd = AT_FDCWD, .addr = AT(a), .len = (unsigned)AT_FDCWD, .off = AT(b)));
	one(X(.arg = "../x y", .arg2 = "a", .path2 = a),
	    E(SYMLINKAT, .fd = AT_FDCWD, .addr = AT("../x y"), .off = AT("a")));
	one(X(.arg = "../x y", .arg2 = "a"),
	    E(SYMLINKAT, .fd = AT_FDCWD, .addr = AT("../x y"), .off = AT("a")));
	one(X(.arg = a), E(UNLINKAT, .fd = AT_FDCWD, .addr = AT(a)));
	one(X(.arg = a, .path = a), E(MKDIRAT, .fd = AT_FDCWD, .addr = AT(a), .len = 0755));
	one(X(.arg = a), E(MKDIRAT, .fd = AT_FDCWD, .addr = AT(a), .len = 0755));
	one(X(.arg = a, .flags = "AT_REMOVEDIR"),
	    E(UNLINKAT, .fd = AT_FDCWD, .addr = AT(a), .op_flags = AT_REMOVEDIR));
	close_logged((int)fd);
	/* An open that makes a file by a link to a directory shows where the link leads. */
	const char *made = in_dir("link/made"), *real = in_dir("real/made");
	T(mkdirat, X(.arg = "real", .path = in_dir("real")), AT_FDCWD, "real", 0755);
	T(symlinkat, X(.arg = "real", .arg2 = "link", .path2 = in_dir("link")), "real", AT_FDCWD,
	  "link");
	fd = one(X(.fd = NONE, .arg = made, .path = real, .flags = "O_RDWR|O_CREAT", .size = NONE),
		 E(OPENAT, .fd = AT_FDCWD, .addr = AT(made), .len = 0600,
		   .op_flags = O_RDWR | O_CREAT));
	ident((int)fd, real);
	close_logged((int)fd);
	one(X(.arg = made, .path = real, .flags = "0"),
	    E(UNLINKAT, .fd = AT_FDCWD, .addr = AT(made)));
}

static void pipe_operations(void)
{
	int fd = new_file("spliced", 8192), ends[2], others[2], pair[2];
	if (pipe(ends) || pipe(others) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		truth_die("pipe");
	one(X(.fd = fd, .size = 1000, .offset = 128),
	    E(SPLICE, .fd = ends[1], .fd_in = (unsigned)fd, .addr = 128, .off = ~0ULL,
	      .len = 1000));
	one(X(.fd = fd, .size = 10),
	    E(SPLICE, .fd = fd, .fd_in = (unsigned)fd, .addr = 0, .off = 0, .len = 10));
	one(X(.fd = ends[0], .size = 500, .not_storage = 1),
	    E(TEE, .fd = others[1], .fd_in = (unsigned)ends[0], .len = 500));
	one(X(.fd = fd, .size = 500), E(TEE, .fd = others[1], .fd_in = (unsigned)fd, .len = 500));
	one(X(.fd = others[0], .size = 400, .offset = NONE, .not_storage = 1),
	    E(READ, .fd = others[0], .addr = AT(buffer), .len = 400));

	one(X(.fd = pair[0], .size = 40, .not_storage = 1),
	    E(SEND, .fd = pair[0], .addr = AT(buffer), .len = 40, .op_flags = MSG_NOSIGNAL));
	one(X(.fd = pair[1], .size = 100, .not_storage = 1),
	    E(RECV, .fd = pair[1], .addr = AT(buffer), .len = 100));
	one(X(.fd = fd), E(SEND, .fd = fd, .addr = AT(buffer), .len = 40));
	one(X(.fd = fd), E(RECV, .fd = fd, .addr = AT(buffer), .len = 40));
	struct iovec part = { buffer, 20 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	one(X(.fd = pair[0], .not_storage = 1),
	    E(SENDMSG, .fd = pair[0], .addr = AT(&message), .len = 1));
	one(X(.fd = pair[1], .not_storage = 1),
	    E(RECVMSG, .fd = pair[1], .addr = AT(&message), .len = 1));
	one(X(.fd = BAD_FD), E(SENDMSG, .fd = BAD_FD, .addr = AT(&message), .len = 1));
	one(X(.fd = BAD_FD), E(RECVMSG, .fd = BAD_FD, .addr = AT(&message), .len = 1));
	one(X(.fd = BAD_FD), E(ACCEPT, .fd = BAD_FD));
	one(X(.fd = BAD_FD), E(CONNECT, .fd = BAD_FD, .addr = AT(&message), .off = 8));
	one(X(.fd = pair[0], .not_storage = 1), E(POLL_ADD, .fd = pair[0], .op_flags = 4));
	one(X(.fd = BAD_FD), E(POLL_ADD, .fd = BAD_FD, .op_flags = 4));
	one(X(.fd = pair[0], .not_storage = 1), E(SHUTDOWN, .fd = pair[0], .len = 2));
	one(X(.fd = BAD_FD), E(SHUTDOWN, .fd = BAD_FD, .len = 2));
	long made =
		one(X(.fd = NONE, .not_storage = 1), E(SOCKET, .fd = AF_UNIX, .off = SOCK_STREAM));
	one(X(.fd = NONE, .not_storage = 1), E(SOCKET, .fd = 12345, .off = SOCK_STREAM));
	if (made >= 0)
		T(close, X(.fd = made, .not_storage = 1), made);
	int watcher = epoll_create1(0);
	struct epoll_event event = { .events = 1 };
	one(X(.fd = watcher, .not_storage = 1),
	    E(EPOLL_CTL, .fd = watcher, .off = (unsigned)ends[0], .len = 1, .addr = AT(&event)));
	one(X(.fd = watcher, .not_storage = 1),
	    E(EPOLL_CTL, .fd = watcher, .off = (unsigned)ends[0], .len = 1, .addr = AT(&event)));
	for (int i = 0; i < 2; i++) {
		T(close, X(.fd = ends[i], .not_storage = 1), ends[i]);
		T(close, X(.fd = others[i], .not_storage = 1), others[i]);
		T(close, X(.fd = pair[i], .not_storage = 1), pair[i]);
	}
	T(close, X(.fd = watcher, .not_storage = 1), watcher);
	close_logged(fd);
}

static void order_operations(void)
{
	int fd = new_file("chain", 4096), ends[2];
	struct timespec soon = { .tv_nsec = 1000000 };
	if (pipe(ends))
		truth_die("pipe");
	one(X(.fd = NONE, .op_flags = "0"), E(.opcode = NOP));
	one(X(.fd = NONE), E(TIMEOUT, .addr = AT(&soon), .len = 1));
	one(X(.fd = NONE), E(TIMEOUT, .addr = AT(&soon), .len = 5));
	one(X(.fd = NONE), E(TIMEOUT_REMOVE, .addr = 4242));
	one(X(.fd = NONE), E(ASYNC_CANCEL, .addr = 4242));
	one(X(.fd = NONE), E(POLL_REMOVE, .addr = 4242));
	one(X(.fd = NONE),
	    E(PROVIDE_BUFFERS, .fd = 4, .addr = AT(buffer), .len = 64, .buf_index = 9));
	one(X(.fd = NONE), E(REMOVE_BUFFERS, .fd = 4, .buf_index = 9));
	one(X(.fd = NONE), E(REMOVE_BUFFERS, .fd = 4, .buf_index = 10));
	one(X(.fd = NONE), E(MSG_RING, .fd = fd, .len = 1));
	/* A chain that goes through, and one that breaks. */
	add(X(.fd = fd, .size = 100, .offset = 0),
	    E(WRITE, LINK, .fd = fd, .addr = AT(buffer), .len = 100));
	add(X(.fd = fd, .op_flags = "LINK|WORKER"), E(FSYNC, LINK, .fd = fd));
	/* The worker goes on with what is linked. */
	add(X(.fd = fd, .size = 100, .offset = 0, .op_flags = "WORKER"),
	    E(READ, .fd = fd, .addr = AT(buffer), .len = 100));
	finish(3);
	add(X(.fd = fd, .size = 9, .op_flags = "LINK"),
	    E(READ, LINK, .fd = fd, .addr = 8, .len = 9));
	add(X(.fd = fd, .size = 10, .offset = 0, .op_flags = "HARDLINK"),
	    E(READ, HARDLINK, .fd = fd, .addr = AT(buffer), .len = 10));
	add(X(.fd = fd, .size = 11), E(READ, .fd = fd, .addr = AT(buffer), .len = 11));
	finish(3);
	/* A read of nothing, which its timeout ends. */
	add(X(.fd = ends[0], .size = 50, .not_storage = 1),
	    E(READ, LINK, .fd = ends[0], .addr = AT(buffer), .len = 50));
	add(X(.fd = NONE), E(LINK_TIMEOUT, .addr = AT(&soon), .len = 1));
	finish(2);
	/* And one that is cancelled. */
	add(X(.fd = ends[0], .not_storage = 1), E(POLL_ADD, .fd = ends[0], .op_flags = 1));
	add(X(.fd = NONE), E(ASYNC_CANCEL, .addr = AT(serial - 1)));
	finish(2);
	add(X(.fd = fd, .size = 10, .offset = 4),
	    E(READ, .fd = fd, .addr = AT(buffer), .len = 10, .off = 4));
	add(X(.fd = fd, .op_flags = "DRAIN|WORKER"), E(FSYNC, DRAIN, .fd = fd));
	finish(2);
	T(close, X(.fd = ends[0], .not_storage = 1), ends[0]);
	T(close, X(.fd = ends[1], .not_storage = 1), ends[1]);
	close_logged(fd);
}

/* A read of a pipe that completes for every write to it. */
static void multishot(void)
{
	int ends[2];
	struct completion c;
	if (!supported[READ_MULTISHOT])
		return;
	if (pipe(ends))
		truth_die("pipe");
	one(X(.fd = NONE),
	    E(PROVIDE_BUFFERS, .fd = 8, .addr = AT(buffer), .len = 512, .buf_index = 3));
	long id = serial++;
	struct entry entry = E(READ_MULTISHOT, BUFFER_SELECT, .fd = ends[0], .buf_index = 3,
			       .user_data = (unsigned long long)id);
	ring_put(&ring, entry);
	ring.queued = 0;
	T(io_uring_enter, X(), ring.fd, 1, 0, 0, NULL, 0L);
	for (int i = 1; i <= 4; i++) {
		/* The last one comes with the end of the pipe. */
		if (i < 4)
			T(write, X(.fd = ends[1], .size = 10 * i, .not_storage = 1), ends[1],
			  buffer, 10 * i);
		else
			T(close, X(.fd = ends[1], .not_storage = 1), ends[1]);
		T(io_uring_enter, X(), ring.fd, 0, 1, ENTER_GETEVENTS, NULL, 0L);
		if (!ring_take(&ring, &c) || (long)c.user_data != id ||
		    !(c.flags & F_MORE) != (i == 4))
			truth_die("multishot");
		printf("shot %ld %d\n", id, c.res);
	}
	T(close, X(.fd = ends[0], .not_storage = 1), ends[0]);
}

/* Rings of other forms; a kernel may be too old for some. */
static struct ring forms[3];

static void make_forms(void)
{
	unsigned flags[] = { SETUP_SQE128, SETUP_NO_SQARRAY, SETUP_SQE128 | SETUP_NO_SQARRAY };
	for (unsigned i = 0; i < 3; i++) {
		struct ring_params params = { .flags = flags[i] };
		int made = (int)syscall(SYS_io_uring_setup, 4, &params);
		if (made >= 0)
			ring_map(&forms[i], made, &params);
	}
}

static void other_rings(int fd)
{
	for (unsigned i = 0; i < 3; i++) {
		if (!forms[i].fd)
			continue;
		struct ring before = ring;
		ring = forms[i];
		for (int n = 0; n < 6; n++)
			one(X(.fd = fd, .size = 10 + n, .offset = 100 * n),
			    E(READ, .fd = fd, .addr = AT(buffer), .len = 10 + (unsigned)n,
			      .off = 100 * (unsigned)n));
		for (int n = 0; n < 3; n++)
			add(X(.fd = fd, .size = 20 + n, .offset = 50 * n),
			    E(READ, .fd = fd, .addr = AT(buffer), .len = 20 + (unsigned)n,
			      .off = 50 * (unsigned)n));
		finish(3);
		ring = before;
	}
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]))
		truth_die("usage: uring DIR");
	dir = argv[1];
	ring_make(&ring, 16, 0);
	/* struct io_uring_probe: a header of 16 bytes, then 8 bytes an operation,
	 * of which the third and fourth are its flags. */
	static unsigned char probe[16 + 256 * 8];
	if (syscall(SYS_io_uring_register, ring.fd, 8, probe, 256))
		truth_die("IORING_REGISTER_PROBE");
	for (int i = 0; i < 256; i++)
		supported[i] = probe[16 + i * 8 + 2] & 1;
	make_forms();
	truth_begin();
	data_operations();
	fixed_operations();
	name_operations();
	pipe_operations();
	order_operations();
	int fd = new_file("forms", 4096);
	other_rings(fd);
	close_logged(fd);
	truth_end();
	/* Completions come in the order of the writes, with rows in between that
	 * depend on the kernel: not part of the log. */
	truth_begin();
	multishot();
	fflush(stdout);
	truth_current->count = 0;
	return 0;
}
