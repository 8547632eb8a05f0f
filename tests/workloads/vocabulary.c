/*
 * Calls that fail and change nothing, with every bit and many values of their
 * flags, modes and commands. Usage: vocabulary
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BAD_FD 987
#define MISSING "no/such/file"
/* Where the value goes. */
#define VALUE 0x7a11e5L

static unsigned long state = 88172645463325252UL;

static unsigned long next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static long at(long argument, long value)
{
	return argument == VALUE ? value : argument;
}

static void with(long number, const long *a, long value)
{
	syscall(number, at(a[0], value), at(a[1], value), at(a[2], value), at(a[3], value),
		at(a[4], value), at(a[5], value));
}

/* No value, small ones, every bit, and bits at random, as far as they lie in
 * `mask`. */
static void all_values(long number, long mask, const long *a)
{
	for (long value = 0; value < 48; value++)
		with(number, a, value & mask);
	for (int bit = 6; bit < 32; bit++)
		with(number, a, 1L << bit & mask);
	for (int i = 0; i < 100; i++)
		with(number, a, next() & next() & mask);
	with(number, a, mask);
}

/* The mask leaves out what has got a name since the strace of Debian 12. */
#define KNOWN(mask, name, ...) all_values(SYS_##name, mask, (long[6]){ __VA_ARGS__ })
#define ALL(name, ...) KNOWN(0xffffffff, name, __VA_ARGS__)
#define TEXT(text) ((long)(text))

/* Commands of fcntl with their arguments, on a descriptor that is none. */
static void fcntl_calls(void)
{
	static const int bases[] = { 0, 1024 };
	for (int base = 0; base < 2; base++)
		for (int i = 0; i < 44; i++) {
			long command = bases[base] + i;
			/* Newer than the strace of Debian 12. */
			if (command == 1027 || command == 1028 ||
			    (command >= 1035 && command <= 1038))
				continue;
			syscall(SYS_fcntl, BAD_FD, command, 0L);
			syscall(SYS_fcntl, BAD_FD, command, 1L);
			for (int n = 0; n < 8; n++)
				syscall(SYS_fcntl, BAD_FD, command, next() & next() & 0x7fdf);
		}
	for (int bit = 0; bit < 32; bit++) {
		syscall(SYS_fcntl, BAD_FD, F_SETFL, 1L << bit);
		/* F_SEAL_EXEC is newer. */
		syscall(SYS_fcntl, BAD_FD, F_ADD_SEALS, 1L << bit & ~0x20L);
		syscall(SYS_fcntl, BAD_FD, F_NOTIFY, 1L << bit);
		syscall(SYS_fcntl, BAD_FD, F_SETFD, 1L << bit);
	}
	for (int type = 0; type < 40; type++) {
		struct flock lock = { .l_type = type, .l_whence = type % 6 };
		lock.l_start = (long)next() >> next() % 64;
		lock.l_len = (long)next() >> next() % 64;
		syscall(SYS_fcntl, BAD_FD, F_SETLK, &lock);
		syscall(SYS_fcntl, BAD_FD, F_OFD_SETLKW, &lock);
		syscall(SYS_fcntl, BAD_FD, F_GETLK, &lock);
	}
}

static void open_calls(void)
{
	for (int i = 0; i < 200; i++) {
		struct open_how how = {
			.flags = i < 32 ? 1UL << i : next() & next() & 0xffffffff,
			.mode = i % 3 ? next() & 07777 : 0,
			.resolve = i < 64 ? 1UL << i % 8 : next() & next() & next() & 0x3f,
		};
		syscall(SYS_openat2, AT_FDCWD, MISSING, &how, sizeof how);
	}
}

int main(void)
{
	char more[512];
	long path = TEXT(MISSING), memory = TEXT(more), name = TEXT("user.x");
#ifdef SYS_open
	ALL(open, path, VALUE, 0640);
	ALL(open, path, O_CREAT, VALUE);
	ALL(access, path, VALUE);
	ALL(chmod, path, VALUE);
	ALL(chown, path, VALUE, 0);
	ALL(mkdir, path, VALUE);
	ALL(mknod, path, VALUE, 0x1234);
	ALL(mknod, path, S_IFBLK, VALUE);
	ALL(creat, path, VALUE);
#endif
	ALL(openat, AT_FDCWD, path, VALUE, 0600);
	ALL(openat, BAD_FD, path, O_RDONLY);
	ALL(preadv2, BAD_FD, memory, 1, 0, 0, VALUE);
	ALL(pwritev2, BAD_FD, memory, 1, 0, 0, VALUE);
	ALL(sync_file_range, BAD_FD, 0, 0, VALUE);
	ALL(splice, BAD_FD, 0, BAD_FD, 0, 1, VALUE);
	ALL(fallocate, BAD_FD, VALUE, 0, 1);
	ALL(fadvise64, BAD_FD, 0, 1, VALUE);
	ALL(close_range, 900, 899, VALUE);
	ALL(lseek, BAD_FD, -3, VALUE);
	ALL(ftruncate, BAD_FD, VALUE);
	ALL(renameat2, AT_FDCWD, path, BAD_FD, path, VALUE);
	ALL(unlinkat, AT_FDCWD, path, VALUE);
	ALL(newfstatat, AT_FDCWD, path, memory, VALUE);
	ALL(statx, AT_FDCWD, path, VALUE, 0x7ff, memory);
	KNOWN(0xfffc3fff, statx, AT_FDCWD, path, 0, VALUE, memory);
	ALL(faccessat, AT_FDCWD, path, VALUE);
	ALL(faccessat2, AT_FDCWD, path, 0, VALUE);
	ALL(fchmod, BAD_FD, VALUE);
	ALL(fchmodat, AT_FDCWD, path, VALUE);
	ALL(fchown, BAD_FD, VALUE, -1);
	ALL(fchownat, AT_FDCWD, path, 1, VALUE, 0);
	ALL(fchownat, AT_FDCWD, path, 1, 2, VALUE);
	ALL(utimensat, AT_FDCWD, path, 0, VALUE);
	ALL(linkat, AT_FDCWD, path, AT_FDCWD, path, VALUE);
	ALL(dup3, BAD_FD, 500, VALUE);
	ALL(flock, BAD_FD, VALUE);
	KNOWN(0xffff00ff, ioctl, BAD_FD, VALUE);
	ALL(mkdirat, AT_FDCWD, path, VALUE);
	ALL(mknodat, AT_FDCWD, path, VALUE, 0x80001234);
	ALL(setxattr, path, name, memory, 1, VALUE);
	ALL(fsetxattr, BAD_FD, name, memory, 1, VALUE);
	/* No length: never mapped. An address that is not aligned. */
	ALL(mmap, 0, 0, VALUE, 2, BAD_FD, 0);
	ALL(mmap, 0, 0, 1, VALUE, BAD_FD, 0);
	ALL(msync, 1, 1, VALUE);
	ALL(madvise, 1, 1, VALUE);
	ALL(io_uring_enter, BAD_FD, 1, 2, VALUE, 0, 0);
	KNOWN(0xffffffc7, io_uring_register, BAD_FD, VALUE, 0, 3);
	fcntl_calls();
	open_calls();
	return 0;
}
