/*
 * Every call that fathom records, made with success and with failure where it
 * can be had. Usage: calls DIR. DIR is empty and on a file system with extended
 * attributes.
 */
#include "truth.h"

#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#define BAD_FD 987

static const char *dir;
static char buffer[65536];

static const char *in_dir(const char *name)
{
	return text("%s/%s", dir, name);
}

/* A new file of `size` bytes, opened to read and write. */
static int new_file(const char *name, long size)
{
	const char *path = in_dir(name);
	int fd = T(openat, X(.fd = NONE, .arg = path, .path = path, .flags = "O_RDWR|O_CREAT"),
		   AT_FDCWD, path, O_RDWR | O_CREAT, 0644);
	ident(fd, path);
	if (size)
		T(pwrite64, X(.fd = fd, .size = size, .offset = 0), fd, buffer, size, 0);
	return fd;
}

static void data_calls(void)
{
	int fd = new_file("data", 10000);
	struct iovec two[2] = { { buffer, 100 }, { buffer + 100, 28 } };

	T(read, X(.fd = fd, .size = 1000, .offset = 0), fd, buffer, 1000);
	T(read, X(.fd = fd, .size = 20000, .offset = 1000), fd, buffer, 20000);
	T(read, X(.fd = fd, .size = 5, .offset = 10000), fd, buffer, 5);
	T(read, X(.fd = BAD_FD, .size = 5, .ino = NONE), BAD_FD, buffer, 5);
	T(read, X(.fd = fd, .size = 7), fd, 1, 7); /* at the end: 0, not EFAULT */
	T(lseek, X(.fd = fd), fd, 200, SEEK_SET);
	T(read, X(.fd = fd, .size = 7), fd, 1, 7);
	T(write, X(.fd = fd, .size = 50, .offset = 200), fd, buffer, 50);
	T(write, X(.fd = BAD_FD, .size = 50, .ino = NONE), BAD_FD, buffer, 50);
	T(write, X(.fd = fd, .size = 0, .offset = 250), fd, buffer, 0);
	T(readv, X(.fd = fd, .size = 128, .offset = 250), fd, two, 2);
	T(readv, X(.fd = BAD_FD, .ino = NONE), BAD_FD, two, 2);
	T(readv, X(.fd = fd), fd, 1, 2);
	T(writev, X(.fd = fd, .size = 128, .offset = 378), fd, two, 2);
	T(writev, X(.fd = fd), fd, two, -1);
	T(pread64, X(.fd = fd, .size = 4096, .offset = 4096), fd, buffer, 4096, 4096);
	T(pread64, X(.fd = fd, .size = 4096, .offset = 9000), fd, buffer, 4096, 9000);
	T(pread64, X(.fd = fd, .size = 4096), fd, buffer, 4096, -1L);
	T(pwrite64, X(.fd = fd, .size = 10, .offset = 5000000000L), fd, buffer, 10, 5000000000L);
	T(pwrite64, X(.fd = BAD_FD, .size = 10), BAD_FD, buffer, 10, 0);
	T(preadv, X(.fd = fd, .size = 128, .offset = 64), fd, two, 2, 64L, 0L);
	T(preadv, X(.fd = BAD_FD), BAD_FD, two, 2, 64L, 0L);
	T(pwritev, X(.fd = fd, .size = 128, .offset = 64), fd, two, 2, 64L, 0L);
	T(pwritev, X(.fd = BAD_FD), BAD_FD, two, 2, 64L, 0L);
	T(preadv2, X(.fd = fd, .size = 128, .offset = 72), fd, two, 2, 72L, 0L, 0);
	/* Position -1: the descriptor's own, which stands at 506 now. */
	T(preadv2, X(.fd = fd, .size = 128, .offset = 506), fd, two, 2, -1L, 0L, 0);
	T(preadv2, X(.fd = fd, .size = 128), fd, two, 2, 0L, 0L, 0x40000000);
	T(pwritev2, X(.fd = fd, .size = 128, .offset = 634), fd, two, 2, -1L, 0L, RWF_DSYNC);
	T(pwritev2, X(.fd = fd, .size = 128, .offset = 8), fd, two, 2, 8L, 0L, 0);
	T(pwritev2, X(.fd = BAD_FD), BAD_FD, two, 2, 8L, 0L, 0);
	T(lseek, X(.fd = fd), fd, 0, SEEK_CUR);

	T(readahead, X(.fd = fd, .offset = 4096, .size = 8192), fd, 4096L, 8192L);
	T(readahead, X(.fd = BAD_FD), BAD_FD, 0L, 1L);
	T(fsync, X(.fd = fd), fd);
	T(fsync, X(.fd = BAD_FD), BAD_FD);
	T(fdatasync, X(.fd = fd), fd);
	T(fdatasync, X(.fd = BAD_FD), BAD_FD);
	T(syncfs, X(.fd = fd), fd);
	T(syncfs, X(.fd = BAD_FD), BAD_FD);
	T(sync_file_range, X(.fd = fd, .offset = 4096, .size = 4096), fd, 4096L, 4096L,
	  SYNC_FILE_RANGE_WRITE);
	T(sync_file_range, X(.fd = fd), fd, -5L, 1L, 0);
	T(fallocate, X(.fd = fd, .offset = 0, .size = 20000), fd, 0, 0L, 20000L);
	T(fallocate, X(.fd = fd, .offset = 0, .size = 0), fd, 0, 0L, 0L);
	T(fadvise64, X(.fd = fd, .offset = 0, .size = 4096), fd, 0L, 4096L, POSIX_FADV_WILLNEED);
	T(fadvise64, X(.fd = fd), fd, 0L, 0L, 99);
	T(ftruncate, X(.fd = fd), fd, 12345L);
	T(ftruncate, X(.fd = fd), fd, -1L);

	int to = new_file("copy", 0);
	long from_position = 100, to_position = 300;
	T(copy_file_range, X(.fd = fd, .size = 1000, .offset = 100), fd, &from_position, to,
	  &to_position, 1000L, 0);
	T(copy_file_range, X(.fd = fd, .size = 10), fd, NULL, to, NULL, 10L, 0);
	T(copy_file_range, X(.fd = fd), fd, NULL, BAD_FD, NULL, 10L, 0);
	from_position = 2000;
	T(sendfile, X(.fd = fd, .size = 500, .offset = 2000), to, fd, &from_position, 500L);
	T(lseek, X(.fd = fd), fd, 64, SEEK_SET);
	T(sendfile, X(.fd = fd, .size = 500, .offset = 64), to, fd, NULL, 500L);
	T(sendfile, X(.fd = fd, .size = 500), BAD_FD, fd, NULL, 500L);

	int ends[2];
	if (pipe(ends))
		truth_die("pipe");
	from_position = 128;
	T(splice, X(.fd = fd, .size = 1000, .offset = 128), fd, &from_position, ends[1], NULL,
	  1000L, 0);
	T(read, X(.fd = ends[0], .size = 400, .offset = NONE, .not_storage = 1), ends[0], buffer,
	  400);
	T(splice, X(.fd = fd), fd, NULL, fd, NULL, 10L, 0);
	T(lseek, X(.fd = ends[0], .not_storage = 1), ends[0], 0, SEEK_SET);
	T(close, X(.fd = ends[0], .not_storage = 1), ends[0]);
	T(close, X(.fd = ends[1], .not_storage = 1), ends[1]);
	close_logged(to);
	close_logged(fd);
	T(close, X(.fd = BAD_FD), BAD_FD);
}

static void open_calls(void)
{
	const char *path = in_dir("opened"), *missing = in_dir("missing");
	struct open_how how = { .flags = O_RDWR, .resolve = RESOLVE_NO_SYMLINKS };
#ifdef SYS_creat
	int fd = T(creat, X(.arg = path, .path = path), path, 0600);
	ident(fd, path);
	close_logged(fd);
	T(creat, X(.arg = "no/such/directory"), "no/such/directory", 0600);
	fd = T(open, X(.arg = path, .path = path), path, O_RDWR | O_CLOEXEC, 0);
	ident(fd, path);
	close_logged(fd);
	T(open, X(.arg = missing, .path = missing), missing, O_RDONLY, 0);
#else
	int fd = new_file("opened", 0);
	close_logged(fd);
#endif
	T(openat, X(.arg = missing, .path = missing), AT_FDCWD, missing, O_RDONLY, 0);
	T(openat, X(.arg = path), AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	T(openat, X(), AT_FDCWD, 1, O_RDONLY, 0);
	fd = T(openat2, X(.arg = path, .path = path), AT_FDCWD, path, &how, sizeof how);
	ident(fd, path);

	int other = T(dup, X(.fd = fd), fd);
	ident(other, path);
	T(dup, X(.fd = BAD_FD), BAD_FD);
	close_logged(other);
#ifdef SYS_dup2
	T(dup2, X(.fd = fd), fd, 500);
	ident(500, path);
	T(dup2, X(.fd = BAD_FD), BAD_FD, 501);
#else
	T(dup3, X(.fd = fd), fd, 500, 0);
	ident(500, path);
#endif
	T(dup3, X(.fd = fd), fd, 502, O_CLOEXEC);
	ident(502, path);
	T(dup3, X(.fd = fd), fd, fd, 0);
	T(close_range, X(.fd = NONE), 500, 502, 0);
	truth_fds[500].path = truth_fds[502].path = NULL;
	T(close_range, X(.fd = NONE), 10, 5, 0);
	how.resolve = 1 << 30;
	T(openat2, X(.arg = path), AT_FDCWD, path, &how, sizeof how);

	T(fcntl, X(.fd = fd), fd, F_GETFL, 0);
	T(fcntl, X(.fd = BAD_FD), BAD_FD, F_GETFL, 0);
	int third = T(fcntl, X(.fd = fd), fd, F_DUPFD_CLOEXEC, 300);
	ident(third, path);
	T(flock, X(.fd = fd), fd, LOCK_EX);
	int second = T(openat, X(.arg = "opened", .path = path), AT_FDCWD, "opened", O_RDWR, 0);
	ident(second, path);
	T(flock, X(.fd = second), second, LOCK_EX | LOCK_NB);
	T(flock, X(.fd = fd), fd, LOCK_UN);
	int block = 0;
	T(ioctl, X(.fd = fd), fd, FIGETBSZ, &block);
	T(ioctl, X(.fd = fd), fd, TIOCGWINSZ, buffer);
	T(lseek, X(.fd = fd), fd, 77, SEEK_SET);
	T(lseek, X(.fd = fd), fd, -100, SEEK_CUR);
	close_logged(third);
	close_logged(second);
	close_logged(fd);
}

static void describe_calls(void)
{
	const char *path = in_dir("described"), *missing = in_dir("missing");
	int fd = new_file("described", 100);
	struct stat st;
	struct statfs fs;
	char more[512];
#ifdef SYS_stat
	T(stat, X(.arg = path, .path = path), path, &st);
	T(stat, X(.arg = missing, .path = missing), missing, &st);
	T(lstat, X(.arg = path, .path = path), path, &st);
	T(lstat, X(.arg = missing), missing, &st);
	T(access, X(.arg = path, .path = path), path, R_OK);
	T(access, X(.arg = missing), missing, R_OK);
	T(chmod, X(.arg = path, .path = path), path, 0640);
	T(chmod, X(.arg = missing), missing, 0640);
	T(chown, X(.arg = path, .path = path), path, 0, 0);
	T(chown, X(.arg = missing), missing, 0, 0);
	T(lchown, X(.arg = path, .path = path), path, 0, 0);
	T(lchown, X(.arg = missing), missing, 0, 0);
	T(utime, X(.arg = path, .path = path), path, NULL);
	T(utime, X(.arg = missing), missing, NULL);
	T(utimes, X(.arg = path, .path = path), path, NULL);
	T(utimes, X(.arg = missing), missing, NULL);
	T(futimesat, X(.arg = path, .path = path), AT_FDCWD, path, NULL);
	T(futimesat, X(.arg = missing), AT_FDCWD, missing, NULL);
#endif
	T(fstat, X(.fd = fd), fd, &st);
	T(fstat, X(.fd = BAD_FD), BAD_FD, &st);
	T(newfstatat, X(.arg = path, .path = path), AT_FDCWD, path, &st, 0);
	T(newfstatat, X(.arg = missing), AT_FDCWD, missing, &st, AT_SYMLINK_NOFOLLOW);
	T(statx, X(.arg = path, .path = path), AT_FDCWD, path, 0, 0x7ff, more);
	T(statx, X(.arg = missing), AT_FDCWD, missing, 0, 0x7ff, more);
	T(statfs, X(.arg = path, .path = path), path, &fs);
	T(statfs, X(.arg = missing), missing, &fs);
	T(fstatfs, X(.fd = fd), fd, &fs);
	T(fstatfs, X(.fd = BAD_FD), BAD_FD, &fs);
	T(faccessat, X(.arg = path, .path = path), AT_FDCWD, path, R_OK);
	T(faccessat, X(.arg = missing), AT_FDCWD, missing, R_OK);
	T(faccessat2, X(.arg = path, .path = path), AT_FDCWD, path, R_OK, AT_EACCESS);
	T(faccessat2, X(.arg = missing), AT_FDCWD, missing, R_OK, 0);
	T(fchmod, X(.fd = fd), fd, 0600);
	T(fchmod, X(.fd = BAD_FD), BAD_FD, 0600);
	T(fchmodat, X(.arg = path, .path = path), AT_FDCWD, path, 0644);
	T(fchmodat, X(.arg = missing), AT_FDCWD, missing, 0644);
	T(fchmodat2, X(.arg = path, .path = path), AT_FDCWD, path, 0644, 0);
	T(fchmodat2, X(.arg = missing), AT_FDCWD, missing, 0644, 0);
	T(fchown, X(.fd = fd), fd, 0, 0);
	T(fchown, X(.fd = BAD_FD), BAD_FD, 0, 0);
	T(fchownat, X(.arg = path, .path = path), AT_FDCWD, path, 0, 0, 0);
	T(fchownat, X(.arg = missing), AT_FDCWD, missing, 0, 0, 0);
	T(utimensat, X(.arg = path, .path = path), AT_FDCWD, path, NULL, 0);
	T(utimensat, X(.arg = missing), AT_FDCWD, missing, NULL, 0);
	T(truncate, X(.arg = path, .path = path), path, 50L);
	T(truncate, X(.arg = missing), missing, 50L);

	T(setxattr, X(.arg = path, .path = path, .size = 3), path, "user.a", "abc", 3L, 0);
	T(setxattr, X(.arg = missing, .size = 3), missing, "user.a", "abc", 3L, 0);
	T(lsetxattr, X(.arg = path, .path = path, .size = 3), path, "user.b", "abc", 3L, 0);
	T(lsetxattr, X(.arg = path, .size = 3), path, "user.b", "abc", 3L, 1);
	T(fsetxattr, X(.fd = fd, .size = 3), fd, "user.c", "abc", 3L, 0);
	T(fsetxattr, X(.fd = BAD_FD, .size = 3), BAD_FD, "user.c", "abc", 3L, 0);
	T(getxattr, X(.arg = path, .path = path, .size = 100), path, "user.a", more, 100L);
	T(getxattr, X(.arg = path, .size = 100), path, "user.none", more, 100L);
	T(lgetxattr, X(.arg = path, .path = path, .size = 100), path, "user.b", more, 100L);
	T(lgetxattr, X(.arg = path, .size = 2), path, "user.b", more, 2L);
	T(fgetxattr, X(.fd = fd, .size = 100), fd, "user.c", more, 100L);
	T(fgetxattr, X(.fd = fd, .size = 100), fd, "user.none", more, 100L);
	T(listxattr, X(.arg = path, .path = path, .size = 100), path, more, 100L);
	T(listxattr, X(.arg = missing, .size = 100), missing, more, 100L);
	T(llistxattr, X(.arg = path, .path = path, .size = 100), path, more, 100L);
	T(llistxattr, X(.arg = missing, .size = 100), missing, more, 100L);
	T(flistxattr, X(.fd = fd, .size = 100), fd, more, 100L);
	T(flistxattr, X(.fd = BAD_FD, .size = 100), BAD_FD, more, 100L);
	T(removexattr, X(.arg = path, .path = path), path, "user.a");
	T(removexattr, X(.arg = path), path, "user.a");
	T(lremovexattr, X(.arg = path, .path = path), path, "user.b");
	T(lremovexattr, X(.arg = path), path, "user.b");
	T(fremovexattr, X(.fd = fd), fd, "user.c");
	T(fremovexattr, X(.fd = fd), fd, "user.c");
	close_logged(fd);
}

static void name_calls(void)
{
	const char *a = in_dir("name-a"), *b = in_dir("name-b"), *missing = in_dir("missing");
	int fd = new_file("name-a", 0);
	close_logged(fd);
#ifdef SYS_rename
	T(link, X(.arg = a, .arg2 = b), a, b);
	T(link, X(.arg = a, .arg2 = b), a, b);
	T(unlink, X(.arg = b), b);
	T(unlink, X(.arg = b), b);
	T(rename, X(.arg = a, .arg2 = b), a, b);
	T(rename, X(.arg = missing, .arg2 = b), missing, b);
	T(symlink, X(.arg = "some target", .arg2 = a, .path2 = a), "some target", a);
	T(symlink, X(.arg = "some target", .arg2 = a), "some target", a);
	T(readlink, X(.arg = a, .size = 100), a, buffer, 100);
	T(readlink, X(.arg = b, .size = 100), b, buffer, 100);
	T(unlink, X(.arg = a), a);
	T(mkdir, X(.arg = a, .path = a), a, 0755);
	T(mkdir, X(.arg = a), a, 0755);
	T(rmdir, X(.arg = a, .path = a), a);
	T(rmdir, X(.arg = a), a);
	T(mknod, X(.arg = a, .path = a), a, S_IFIFO | 0600, 0);
	T(mknod, X(.arg = a), a, S_IFIFO | 0600, 0);
	T(unlink, X(.arg = a), a);
	T(rename, X(.arg = b, .arg2 = a), b, a);
#endif
	T(linkat, X(.arg = a, .arg2 = b), AT_FDCWD, a, AT_FDCWD, b, 0);
	T(linkat, X(.arg = a, .arg2 = b), AT_FDCWD, a, AT_FDCWD, b, 0);
	T(unlinkat, X(.arg = b), AT_FDCWD, b, 0);
	T(unlinkat, X(.arg = b), AT_FDCWD, b, 0);
	T(renameat, X(.arg = a, .arg2 = b), AT_FDCWD, a, AT_FDCWD, b);
	T(renameat, X(.arg = a, .arg2 = b), AT_FDCWD, a, AT_FDCWD, b);
	T(renameat2, X(.arg = b, .arg2 = a), AT_FDCWD, b, AT_FDCWD, a, RENAME_NOREPLACE);
	T(renameat2, X(.arg = b, .arg2 = a), AT_FDCWD, b, AT_FDCWD, a, 0);
	T(symlinkat, X(.arg = "../x y", .arg2 = b), "../x y", AT_FDCWD, b);
	T(symlinkat, X(.arg = "../x y", .arg2 = b), "../x y", AT_FDCWD, b);
	T(readlinkat, X(.arg = b, .size = 100), AT_FDCWD, b, buffer, 100);
	T(readlinkat, X(.arg = missing, .size = 100), AT_FDCWD, missing, buffer, 100);
	T(unlinkat, X(.arg = b), AT_FDCWD, b, 0);
	T(mkdirat, X(.arg = b, .path = b), AT_FDCWD, b, 0755);
	T(mkdirat, X(.arg = b), AT_FDCWD, b, 0755);
	T(unlinkat, X(.arg = b, .flags = "AT_REMOVEDIR"), AT_FDCWD, b, AT_REMOVEDIR);
	T(mknodat, X(.arg = b, .path = b), AT_FDCWD, b, S_IFIFO | 0600, 0);
	T(mknodat, X(.arg = b), AT_FDCWD, b, S_IFIFO | 0600, 0);
	T(unlinkat, X(.arg = b), AT_FDCWD, b, 0);

	fd = T(openat, X(.arg = ".", .path = dir), AT_FDCWD, ".", O_RDONLY | O_DIRECTORY, 0);
	ident(fd, dir);
#ifdef SYS_getdents
	T(getdents, X(.fd = fd, .size = sizeof buffer), fd, buffer, sizeof buffer);
	T(getdents, X(.fd = BAD_FD, .size = 100), BAD_FD, buffer, 100);
	T(lseek, X(.fd = fd), fd, 0, SEEK_SET);
#endif
	T(getdents64, X(.fd = fd, .size = sizeof buffer), fd, buffer, sizeof buffer);
	T(getdents64, X(.fd = BAD_FD, .size = 100), BAD_FD, buffer, 100);
	T(chdir, X(.arg = "/", .path = "/"), "/");
	T(chdir, X(.arg = missing, .path = missing), missing);
	T(fchdir, X(.fd = fd), fd);
	T(fchdir, X(.fd = BAD_FD), BAD_FD);
	T(sync, X(.fd = NONE, .size = NONE, .offset = NONE));
	close_logged(fd);
}

static void memory_calls(void)
{
	int fd = new_file("mapped", 8192);
	char *map = (char *)T(mmap, X(.fd = fd, .size = 8192, .offset = 0), NULL, 8192L,
			      PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
	T(mmap, X(.fd = fd, .size = 0), NULL, 0L, PROT_READ, MAP_SHARED, fd, 0L);
	T(mmap, X(.fd = BAD_FD, .size = 4096), NULL, 4096L, PROT_READ, MAP_SHARED, BAD_FD, 0L);
	char *anonymous = (char *)T(mmap, X(.size = 4096), NULL, 4096L, PROT_READ,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
	map[0] = 1;
	T(msync, X(.size = 8192), map, 8192L, MS_SYNC);
	T(msync, X(.size = 8192), map + 1, 8192L, MS_SYNC);
	T(madvise, X(.size = 8192), map, 8192L, MADV_DONTNEED);
	T(madvise, X(.size = 8192), map, 8192L, 9999);
	T(munmap, X(.size = 8192), map, 8192L);
	T(munmap, X(.size = 4096), anonymous, 4096L);
	T(munmap, X(.size = 0), anonymous, 0L);
	close_logged(fd);
}

static void async_calls(void)
{
	aio_context_t context = 0;
	int fd = new_file("async", 4096);
	struct iocb block = { .aio_fildes = (unsigned)fd,
			      .aio_lio_opcode = IOCB_CMD_PREAD,
			      .aio_buf = (unsigned long)buffer,
			      .aio_nbytes = 512 };
	struct iocb other = block;
	struct iocb *blocks[] = { &block, &other };
	struct expect done = X(.fd = fd, .size = 512, .offset = 0, .user_data = 0);
	struct io_event events[4];
	struct timespec none = { 0 };
	T(io_setup, X(.fd = NONE), 8, &context);
	T(io_setup, X(.fd = NONE), 0, &context);
	T(io_submit, X(.fd = NONE), context, 1L, blocks);
	truth_note("IOCB_CMD_PREAD", done, 512);
	T(io_getevents, X(.fd = NONE), context, 1L, 4L, events, NULL);
	T(io_getevents, X(.fd = NONE), 12345L, 1L, 4L, events, &none);
	T(io_submit, X(.fd = NONE), context, 2L, blocks);
	truth_note("IOCB_CMD_PREAD", done, 512);
	truth_note("IOCB_CMD_PREAD", done, 512);
	T(io_pgetevents, X(.fd = NONE), context, 2L, 4L, events, NULL, NULL);
	T(io_pgetevents, X(.fd = NONE), 12345L, 2L, 4L, events, NULL, NULL);
	T(io_submit, X(.fd = NONE), 12345L, 1L, blocks);
	T(io_cancel, X(.fd = NONE), context, &block, events);
	T(io_destroy, X(.fd = NONE), context);
	T(io_destroy, X(.fd = NONE), context);

	struct io_uring_params params = { 0 };
	int ring = T(io_uring_setup, X(.fd = NONE), 4, &params);
	T(io_uring_setup, X(.fd = NONE), 0, &params);
	T(io_uring_enter, X(), ring, 0, 0, 0, NULL, 0L);
	T(io_uring_enter, X(), BAD_FD, 0, 0, 0, NULL, 0L);
	struct iovec fixed = { buffer, 4096 };
	T(io_uring_register, X(), ring, IORING_REGISTER_BUFFERS, &fixed, 1);
	T(io_uring_register, X(), ring, 9999, &fixed, 1);
	T(close, X(.fd = ring, .not_storage = 1), ring);
	close_logged(fd);
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]))
		truth_die("usage: calls DIR");
	dir = argv[1];
	truth_begin();
	data_calls();
	open_calls();
	describe_calls();
	name_calls();
	memory_calls();
	async_calls();
	truth_end();
	return 0;
}
