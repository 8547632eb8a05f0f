/*
 * Calls beyond 4 GiB, as libc makes them: a 32-bit program passes such numbers in
 * two registers. Usage: large DIR
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

static void must(const char *what, long long result, long long expected)
{
	if (result != expected) {
		fprintf(stderr, "%s: %lld\n", what, result);
		perror(what);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]))
		return 2;
	static char b[100];
	off_t at = 0x123456700;
	struct iovec segments[3] = { { b, 10 }, { b, 0 }, { b, 15 } };
	int fd = open("file", O_RDWR | O_CREAT, 0644);
	must("pwrite", pwrite(fd, b, 50, 0x123456789), 50);
	must("pread", pread(fd, b, 60, 0x123456780), 59);
	must("lseek", lseek(fd, 0x200000000, SEEK_SET), 0x200000000);
	must("write", write(fd, b, 30), 30);
	must("writev", writev(fd, segments, 3), 25);
	must("pwritev", pwritev(fd, segments, 3, 0x155555555), 25);
	must("preadv", preadv(fd, segments, 3, 0x155555555), 25);
	must("fallocate", fallocate(fd, 0, 0x300000000, 0x100000010), 0);
	must("ftruncate", ftruncate(fd, 0x310000000), 0);
	must("truncate", truncate("file", 0x320000000), 0);
	must("fadvise", posix_fadvise(fd, 0x200000000, 0x200000001, POSIX_FADV_DONTNEED), 0);
	must("sync_file_range", sync_file_range(fd, 0x200000000, 0x200000002, 2), 0);
	must("readahead", readahead(fd, 0x200000000, 4096), 0);
	must("mmap", mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0x200000000) == MAP_FAILED, 0);
	int to = open("to", O_RDWR | O_CREAT, 0644);
	must("sendfile", sendfile(to, fd, &at, 200), 200);
	struct stat st;
	must("stat", stat("file", &st), 0);
#ifdef __i386__
	long long buffer[16];
	must("stat64", syscall(SYS_stat64, "file", buffer), 0);
#endif
	must("access", access("missing", R_OK), -1);
	must("rename", rename("to", "moved"), 0);
	must("unlink", unlink("moved"), 0);
	must("close", close(-1), -1);
	return 0;
}
