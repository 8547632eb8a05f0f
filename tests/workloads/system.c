/*
 * Calls on mounts, root directories, mappings, watches and other things around
 * files, and arguments that are odd. Usage: system DIR, as root. DIR is empty.
 */
#include "truth.h"

#include <linux/fs.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#define BAD_FD 987

/* Newer than some headers; the same numbers on all architectures. */
enum {
	SYS_open_tree_ = 428,
	SYS_move_mount_ = 429,
	SYS_fsopen_ = 430,
	SYS_fsconfig_ = 431,
	SYS_fsmount_ = 432,
	SYS_fspick_ = 433,
	SYS_process_madvise_ = 440,
	SYS_mount_setattr_ = 442,
	SYS_quotactl_fd_ = 443,
	SYS_memfd_secret_ = 447,
	SYS_cachestat_ = 451,
	SYS_statmount_ = 457,
	SYS_listmount_ = 458,
	SYS_setxattrat_ = 463,
	SYS_getxattrat_ = 464,
	SYS_listxattrat_ = 465,
	SYS_removexattrat_ = 466,
	SYS_open_tree_attr_ = 467,
	SYS_file_getattr_ = 468,
	SYS_file_setattr_ = 469,
};
/* T() for these. */
#define N_6(name, x, a, b, c, d, e, f, ...)                                                        \
	truth_call(#name, SYS_##name##_, x, TRUTH_ARG(a), TRUTH_ARG(b), TRUTH_ARG(c),              \
		   TRUTH_ARG(d), TRUTH_ARG(e), TRUTH_ARG(f))
#define N(name, ...) N_6(name, __VA_ARGS__, 0, 0, 0, 0, 0, 0)

static const char *dir;
static char buffer[65536] __attribute__((aligned(65536)));

static const char *in_dir(const char *name)
{
	return text("%s/%s", dir, name);
}

static void done(int fd)
{
	T(close, X(.fd = fd), fd);
}

static int opened(const char *path, int flags)
{
	return T(openat, X(.arg = path, .path = path), AT_FDCWD, path, flags, 0600);
}

static void make_directory(const char *path)
{
	T(mkdirat, X(.arg = path, .path = path), AT_FDCWD, path, 0755);
}

static int new_file(const char *name, long size)
{
	const char *path = in_dir(name);
	int fd = T(openat, X(.arg = path, .path = path), AT_FDCWD, path, O_RDWR | O_CREAT, 0644);
	ident(fd, path);
	if (size)
		T(pwrite64, X(.fd = fd, .size = size, .offset = 0), fd, buffer, size, 0);
	return fd;
}

static void mapping_calls(void)
{
	int fd = new_file("mapped", 65536);
	const char *path = in_dir("mapped");
	char *map = (char *)T(mmap, X(.fd = fd, .size = 8192, .offset = 4096), NULL, 8192L,
			      PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096L);
	/* Grown and moved: the file and its byte are those that are there now. */
	char *moved = (char *)T(mremap, X(.size = 8192, .offset = 4096, .path = path), map, 8192L,
				16384L, MREMAP_MAYMOVE);
	T(mremap, X(.size = 8192), moved, 8192L, 0L, 0);
	moved[0] = 1;
	T(msync, X(.size = 4096, .offset = 8192, .path = path), moved + 4096, 4096L, MS_SYNC);
	T(mprotect, X(.size = 4096, .offset = 4096, .path = path), moved, 4096L, PROT_READ);
	T(mprotect, X(.size = 4096), moved + 1, 4096L, PROT_READ);
	T(pkey_mprotect, X(.size = 4096, .path = path), moved, 4096L, PROT_READ | PROT_WRITE, -1);
	T(pkey_mprotect, X(.size = 4096), moved + 1, 4096L, PROT_READ, -1);
	T(mincore, X(.size = 4096, .path = path), moved, 4096L, buffer);
	T(mincore, X(.size = 4096), moved + 1, 4096L, buffer);
	T(mlock, X(.size = 4096, .path = path), moved, 4096L);
	T(mlock, X(.size = NONE, .args = "addr=0x1000, size=18446744073709551615"), 0x1000L, -1L);
	T(mlock, X(.size = 4096), 0x1000L, 4096L);
	T(mlock2, X(.size = 4096, .path = path, .flags = "MLOCK_ONFAULT"), moved, 4096L, 1);
	T(mlock2, X(.size = 4096), moved, 4096L, 8);
	T(munlock, X(.size = 4096, .path = path), moved, 4096L);
	T(munlock, X(.size = 4096), 0x1000L, 4096L);
	T(mlockall, X(.flags = "MCL_CURRENT"), MCL_CURRENT);
	T(mlockall, X(.flags = "0x40 /* MCL_??? */"), 0x40);
	T(munlockall, X());
	T(remap_file_pages, X(.size = 4096, .path = path), moved, 4096L, 0L, 2L, 0);
	T(remap_file_pages, X(.size = 4096), 0L, 4096L, 0L, 2L, 0);
	T(munmap, X(.size = 16384), moved, 16384L);
	struct iovec range = { buffer, 4096 };
	int self = syscall(SYS_pidfd_open, getpid(), 0);
	N(process_madvise, X(.fd = self, .args = "vlen=1, advice=MADV_COLD"), self, &range, 1L, 20L,
	  0);
	N(process_madvise, X(.fd = BAD_FD), BAD_FD, &range, 1L, 20L, 0);
	done(self);
	struct {
		uint64_t off, len;
	} whole = { 0, 65536 };
	N(cachestat, X(.fd = fd, .path = path), fd, &whole, buffer, 0);
	N(cachestat, X(.fd = BAD_FD), BAD_FD, &whole, buffer, 0);
	close_logged(fd);

	fd = T(memfd_create,
	       X(.flags = "MFD_CLOEXEC", .args = "name=\"a name\"", .path = "/memfd:a name"),
	       "a name", 1);
	ident(fd, "/memfd:a name");
	T(write, X(.fd = fd, .size = 10, .offset = 0), fd, buffer, 10);
	close_logged(fd);
	T(memfd_create, X(.args = "name=NULL"), NULL, 0);
	fd = N(memfd_secret, X(), 0);
	if (fd >= 0)
		done(fd);
	N(memfd_secret, X(), 0x10);
	fd = T(userfaultfd, X(.flags = "O_CLOEXEC"), O_CLOEXEC);
	if (fd >= 0)
		done(fd);
	T(userfaultfd, X(), 0x80);
}

static void pipe_calls(void)
{
	int a[2], b[2];
	struct iovec two[2] = { { buffer, 100 }, { buffer + 100, 28 } };
	if (pipe(a) || pipe(b))
		truth_die("pipe");
	T(vmsplice, X(.fd = a[1], .size = 128, .args = "iovcnt=2", .not_storage = 1), a[1], two, 2L,
	  0);
	T(vmsplice, X(.fd = BAD_FD, .args = "iovcnt=2"), BAD_FD, two, 2L, 0);
	T(tee, X(.fd = a[0], .size = 60, .not_storage = 1), a[0], b[1], 60L, 0);
	T(tee, X(.fd = BAD_FD, .size = 60), BAD_FD, b[1], 60L, 0);
	done(a[0]);
	done(a[1]);
	done(b[0]);
	done(b[1]);
}

static void mount_calls(void)
{
	const char *there = in_dir("mount"), *other = in_dir("other"), *file;
	char answer[256];
	make_directory(there);
	make_directory(other);
	T(mount,
	  X(.arg = there, .path = there, .flags = "MS_NOSUID|MS_NOEXEC",
	    .args = "source=\"nothing\", fstype=\"tmpfs\""),
	  "nothing", there, "tmpfs", MS_NOSUID | MS_NOEXEC, "size=1m");
	T(mount, X(.arg = there, .path = there, .args = "source=\"nothing\", fstype=NULL"),
	  "nothing", there, NULL, 0L, NULL);
	file = in_dir("mount/file");
	int fd = T(openat, X(.arg = file, .path = file), AT_FDCWD, file, O_RDWR | O_CREAT, 0600);
	ident(fd, file);
	T(pwrite64, X(.fd = fd, .size = 5, .offset = 0), fd, buffer, 5, 0L);
	/* With the mount goes the path of what is open on it. */
	T(mount, X(.arg = other, .path = other, .flags = "MS_MOVE"), there, other, NULL, MS_MOVE,
	  NULL);
	set_path(fd, in_dir("other/file"));
	T(pwrite64, X(.fd = fd, .size = 5, .offset = 5), fd, buffer, 5, 5L);
	int tree = N(open_tree, X(.arg = other, .path = other, .flags = "0"), AT_FDCWD, other, 0);
	N(open_tree, X(.arg = "none"), AT_FDCWD, "none", 0);
	N(move_mount,
	  X(.arg = "", .arg2 = there, .path2 = there, .flags = "MOVE_MOUNT_F_EMPTY_PATH"), tree, "",
	  AT_FDCWD, there, 4);
	set_path(fd, file);
	T(pwrite64, X(.fd = fd, .size = 5, .offset = 10), fd, buffer, 5, 10L);
	N(move_mount, X(.arg = "none", .arg2 = there), AT_FDCWD, "none", AT_FDCWD, there, 0);
	done(tree);
	struct {
		uint64_t set, clear, propagation, user;
	} attributes = { .set = 2 };
	N(mount_setattr, X(.arg = there, .path = there, .flags = "0"), AT_FDCWD, there, 0,
	  &attributes, 32L);
	N(mount_setattr, X(.arg = "none"), AT_FDCWD, "none", 0, &attributes, 32L);
	tree = N(open_tree_attr, X(.arg = there), AT_FDCWD, there, 1, &attributes, 32L);
	if (tree >= 0)
		done(tree);
	N(open_tree_attr, X(.arg = "none"), AT_FDCWD, "none", 1, &attributes, 32L);
	tree = N(fspick, X(.arg = there, .flags = "FSPICK_CLOEXEC"), AT_FDCWD, there, 1);
	done(tree);
	N(fspick, X(.arg = "none"), AT_FDCWD, "none", 0);
	tree = N(fsopen, X(.args = "fs_name=\"tmpfs\""), "tmpfs", 0);
	N(fsopen, X(.args = "fs_name=\"no such\""), "no such", 0);
	N(fsconfig,
	  X(.fd = tree, .args = "cmd=FSCONFIG_SET_STRING, key=\"size\", value=\"1m\", aux=0"), tree,
	  1, "size", "1m", 0);
	N(fsconfig, X(.fd = tree, .args = "cmd=FSCONFIG_CMD_CREATE, key=NULL, value=NULL, aux=0"),
	  tree, 6, NULL, NULL, 0);
	N(fsconfig, X(.fd = BAD_FD), BAD_FD, 6, NULL, NULL, 0);
	int made = N(fsmount, X(.fd = tree, .args = "attr_flags=MOUNT_ATTR_RDONLY"), tree, 0, 1);
	done(made);
	done(tree);
	N(fsmount, X(.fd = BAD_FD), BAD_FD, 0, 0);
	struct {
		uint32_t size, spare;
		uint64_t id, param;
	} request = { .size = 24, .id = ~0ULL };
	N(listmount, X(.args = "nr_mnt_ids=8"), &request, answer, 8L, 0);
	N(listmount, X(), NULL, answer, 8L, 0);
	memcpy(&request.id, answer, sizeof request.id);
	request.param = 1;
	N(statmount, X(.args = "bufsize=65536"), &request, buffer, 65536L, 0);
	N(statmount, X(), NULL, buffer, 8L, 0);
	close_logged(fd);
	T(umount2, X(.arg = there, .path = there, .flags = "MNT_DETACH"), there, MNT_DETACH);
	T(umount2, X(.arg = there, .path = there, .flags = "0"), there, 0);
	T(quotactl, X(.arg = "/dev/none"), 0x80000700, "/dev/none", 0, buffer);
	fd = new_file("quota", 0);
	N(quotactl_fd, X(.fd = fd), fd, 0x80000700, 0, buffer);
	close_logged(fd);
	T(swapon, X(.arg = "none", .flags = "SWAP_FLAG_PREFER|10"), "none", 0x8000 | 10);
	T(swapoff, X(.arg = "none"), "none");
	T(pivot_root, X(.arg = "none", .arg2 = "none"), "none", "none");
}

/* Roots other than the machine's: `..` does not lead out of them. */
static void root_calls(void)
{
	const char *jail = in_dir("jail"), *inside = in_dir("jail/outside");
	struct stat st;
	make_directory(jail);
	make_directory(in_dir("jail/sub"));
	done(opened(in_dir("outside"), O_CREAT | O_RDWR));
	done(opened(inside, O_CREAT | O_RDWR));
	if (T(newfstatat, X(.arg = inside), AT_FDCWD, inside, &st, 0))
		truth_die("stat");
	long ino = (long)st.st_ino;
	int top = opened("/", O_PATH | O_DIRECTORY);
	T(chroot, X(.arg = "none"), "none");
	T(chroot, X(.arg = jail, .path = jail), jail);
	T(chdir, X(.arg = "/", .path = jail), "/");
	for (int round = 0; round < 2; round++) {
		const char *names[] = { "../outside", "../../outside", "/../outside", "outside" };
		for (int i = 0; i < 4; i++)
			T(newfstatat, X(.arg = names[i], .path = inside, .ino = ino), AT_FDCWD,
			  names[i], &st, 0);
		T(faccessat, X(.arg = "../gone", .path = in_dir("jail/gone")), AT_FDCWD, "../gone",
		  F_OK);
		const char *climbs[] = { "/sub/../../outside", "sub/../../outside" };
		for (int i = 0; i < 2; i++)
			T(newfstatat,
			  X(.arg = climbs[i], .path = in_dir("jail/sub/../outside"), .ino = ino),
			  AT_FDCWD, climbs[i], &st, 0);
		int fd = T(openat, X(.arg = "../../outside", .path = inside, .ino = ino), AT_FDCWD,
			   "../../outside", O_RDONLY, 0);
		T(close, X(.fd = fd, .path = inside, .ino = ino), fd);
	}
	if (T(fchdir, X(.fd = top), top))
		truth_die("fchdir");
	T(chroot, X(.arg = ".", .path = "/"), ".");
	done(top);
	if (T(chdir, X(.arg = dir, .path = dir), dir))
		truth_die("chdir");
	/* A directory that a call makes its root. */
	struct open_how how = { .flags = O_RDONLY, .resolve = RESOLVE_IN_ROOT };
	int at = opened(jail, O_PATH | O_DIRECTORY);
	T(openat2, X(.arg = "/../none", .path = in_dir("jail/none")), at, "/../none", &how, 24L);
	done(at);
}

static void handle_calls(void)
{
	int fd = new_file("handled", 100);
	const char *path = in_dir("handled");
	struct {
		unsigned bytes;
		int type;
		char data[128];
	} handle = { .bytes = 128 };
	int mount_id;
	T(name_to_handle_at, X(.arg = path, .path = path, .flags = "0"), AT_FDCWD, path, &handle,
	  &mount_id, 0);
	int at = opened(dir, O_RDONLY | O_DIRECTORY);
	int again = T(open_by_handle_at, X(.fd = at, .flags = "O_RDONLY"), at, &handle, O_RDONLY);
	if (again >= 0) {
		ident(again, path);
		T(pread64, X(.fd = again, .size = 10, .offset = 0), again, buffer, 10, 0L);
		close_logged(again);
	}
	handle.bytes = 0;
	T(name_to_handle_at, X(.arg = path, .path = path), AT_FDCWD, path, &handle, &mount_id, 0);
	T(open_by_handle_at, X(.fd = at), at, &handle, O_RDONLY);
	done(at);

	struct {
		uint64_t flags;
		uint32_t rest[4];
	} attr;
	N(file_getattr, X(.arg = path, .path = path, .flags = "0"), AT_FDCWD, path, &attr, 24L, 0);
	N(file_getattr, X(.arg = "none"), AT_FDCWD, "none", &attr, 24L, 0);
	N(file_setattr, X(.arg = path, .path = path), AT_FDCWD, path, &attr, 24L, 0);
	N(file_setattr, X(.arg = "none"), AT_FDCWD, "none", &attr, 24L, 0);

	struct {
		uint64_t value;
		uint32_t size, flags;
	} value = { (uint64_t)(uintptr_t) "abc", 3, 0 };
	N(setxattrat,
	  X(.arg = path, .path = path,
	    .args = text("dirfd=AT_FDCWD<%s>, name=\"user.x\", value={size=3, flags=0}, usize=16",
			 dir)),
	  AT_FDCWD, path, 0, "user.x", &value, 16L);
	N(setxattrat, X(.arg = "none"), AT_FDCWD, "none", 0, "user.x", &value, 16L);
	value.value = (uint64_t)(uintptr_t)buffer;
	value.size = 100;
	N(getxattrat, X(.arg = path, .path = path), AT_FDCWD, path, 0, "user.x", &value, 16L);
	N(getxattrat, X(.arg = path), AT_FDCWD, path, 0, "user.none", &value, 16L);
	N(listxattrat, X(.arg = path, .path = path, .size = 100), AT_FDCWD, path, 0, buffer, 100L);
	N(listxattrat, X(.arg = "none", .size = 100), AT_FDCWD, "none", 0, buffer, 100L);
	N(removexattrat, X(.arg = path, .path = path), AT_FDCWD, path, 0, "user.x");
	N(removexattrat, X(.arg = path), AT_FDCWD, path, 0, "user.x");
	close_logged(fd);
#ifdef SYS_ustat
	struct stat st;
	if (T(newfstatat, X(.arg = "/"), AT_FDCWD, "/", &st, 0))
		truth_die("stat");
	T(ustat, X(), (long)st.st_dev, buffer);
	T(ustat, X(), 0xfffffL, buffer);
#endif
	long mask = T(umask, X(.args = "mask=027"), 027);
	T(umask, X(.args = NULL), mask);
}

static void watch_calls(void)
{
	const char *path = in_dir("watched");
	int file = new_file("watched", 0);
#ifdef SYS_inotify_init
	int old = T(inotify_init, X());
	done(old);
#endif
	int fd = T(inotify_init1, X(.flags = "IN_CLOEXEC"), 02000000);
	T(inotify_init1, X(), 1);
	int watch = T(inotify_add_watch,
		      X(.fd = fd, .arg = path, .path = path, .args = "mask=IN_MODIFY|IN_CREATE"),
		      fd, path, 0x102);
	T(inotify_add_watch, X(.fd = fd, .arg = "none"), fd, "none", 2);
	T(inotify_rm_watch, X(.fd = fd), fd, watch);
	T(inotify_rm_watch, X(.fd = fd), fd, 99);
	done(fd);
	fd = T(fanotify_init,
	       X(.flags = "FAN_CLASS_NOTIF|FAN_CLOEXEC", .args = "event_flags=O_RDONLY"), 1,
	       O_RDONLY);
	T(fanotify_init, X(), 0xc, 0);
	T(fanotify_mark, X(.fd = fd, .arg = path, .path = path, .flags = "FAN_MARK_ADD"), fd, 1,
	  0x20L, AT_FDCWD, path);
	T(fanotify_mark,
	  X(.fd = fd, .path = path, .flags = "FAN_MARK_REMOVE",
	    .args = text("mask=FAN_OPEN, dirfd=%d<%s>, path_arg=NULL", file, in_dir("watched"))),
	  fd, 2, 0x20L, file, NULL);
	T(fanotify_mark, X(.fd = fd, .arg = "none"), fd, 1, 0x20L, AT_FDCWD, "none");
	if (fd >= 0)
		done(fd);
	close_logged(file);
}

/* What registers hold that a program did not mean. */
static void odd_arguments(void)
{
	static char long_path[5000];
	int fd = new_file("odd", 4096);
	T(fallocate, X(.fd = fd, .size = -5, .offset = 0), fd, 0, 0L, -5L);
	T(sync_file_range, X(.fd = fd, .size = -1, .offset = 0), fd, 0L, -1L, 0);
	T(read, X(.fd = fd, .size = NONE, .args = "size=18446744073709551615"), fd, buffer, -1L);
	T(readahead, X(.fd = fd, .size = NONE, .args = "size=9223372036854775808"), fd, 0L,
	  LONG_MIN);
	T(fadvise64, X(.fd = fd, .size = NONE), fd, 0L, LONG_MIN, 0);
	T(pread64, X(.fd = fd, .size = 5, .offset = NONE, .args = "offset=-9223372036854775808"),
	  fd, buffer, 5L, LONG_MIN);
	T(fsync, X(.fd = NONE, .args = "fd=-2147483648"), INT_MIN);
	T(getdents64, X(.fd = fd, .size = 8192), fd, buffer, 0x0defaced00002000L);
	T(ftruncate, X(.fd = fd, .args = "length=-7"), fd, -7L);
	T(readlinkat, X(.size = -1), AT_FDCWD, "none", buffer, -1);
	T(io_submit, X(.args = "ctx=NULL, iocbs=-3855172618362687475"), NULL, -3855172618362687475L,
	  NULL);
	struct open_how how = { .flags = O_RDONLY, .mode = 0x10000000001ff };
	T(openat2,
	  X(.args = text("dirfd=AT_FDCWD<%s>, mode=010000000000000777, resolve=0, size=24", dir)),
	  AT_FDCWD, "odd", &how, 24L);
	T(openat2, X(.args = text("dirfd=AT_FDCWD<%s>, size=11", dir)), AT_FDCWD, "odd", &how, 11L);
	memset(long_path, '/', sizeof long_path - 1);
	T(chdir, X(.args = "path_arg=partial"), long_path);
	T(chdir, X(.args = "path_arg=NULL"), NULL);
	T(chdir, X(.args = "path_arg=partial"), 1);
	T(chdir, X(.arg = ""), "");
	int owner[2] = { 1, getpid() };
	T(fcntl,
	  X(.fd = fd, .args = text("cmd=F_SETOWN_EX, arg={type=F_OWNER_PID, pid=%d}", getpid())),
	  fd, 15, owner);
	T(fcntl,
	  X(.fd = fd, .args = text("cmd=F_GETOWN_EX, arg={type=F_OWNER_PID, pid=%d}", getpid())),
	  fd, 16, owner);
	long hint = 2;
	T(fcntl, X(.fd = fd, .args = "cmd=F_SET_RW_HINT, arg=[RWH_WRITE_LIFE_SHORT]"), fd, 1036,
	  &hint);
	T(fcntl, X(.fd = fd, .args = "cmd=F_GET_RW_HINT, arg=[RWH_WRITE_LIFE_SHORT]"), fd, 1035,
	  &hint);
	struct stat st;
	struct statfs fs;
	T(fstat, X(.fd = fd), fd, &st);
	T(fstat, X(.fd = fd, .args = "stat=NULL"), fd, NULL);
	T(statfs, X(.arg = dir), dir, &fs);
	T(newfstatat, X(.arg = "/dev/null"), AT_FDCWD, "/dev/null", &st, 0);
	close_logged(fd);
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]))
		truth_die("usage: system DIR");
	dir = argv[1];
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		truth_die("a mount namespace");
	truth_begin();
	mapping_calls();
	pipe_calls();
	mount_calls();
	root_calls();
	handle_calls();
	watch_calls();
	odd_arguments();
	truth_end();
	return 0;
}
