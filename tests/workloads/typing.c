// Tries to type a line into its terminal in every way that there is, says of each what came of
// it: `WAY typed` or `WAY ERRNO`.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char LINE[] = "typed-by-the-command\n";

static void say(const char *way, int failed)
{
	printf("%s %s\n", way, failed ? strerrorname_np(failed) : "typed");
	fflush(stdout);
}

static int plain(int fd, unsigned long request, const char *c)
{
	return ioctl(fd, request, c) ? errno : 0;
}

// The kernel looks at the lower half of the request.
static int wide(int fd, unsigned long request, const char *c)
{
	return syscall(SYS_ioctl, (long)fd, request | 0xffffffff00000000UL, c) ? errno : 0;
}

#ifdef __x86_64__
static int of_32_bits(int fd, unsigned long request, const char *c)
{
	static char *low;
	long result;
	if (!low)
		low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	*low = *c;
	// Numbers of i386.
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(54L), "b"((long)fd), "c"(request), "d"(low)
			 : "memory", "r8", "r9", "r10", "r11");
	return result < 0 ? (int)-result : 0;
}

static int of_x32(int fd, unsigned long request, const char *c)
{
	return syscall(0x40000000 | 514, (long)fd, request, c) ? errno : 0;
}
#endif

static void type_line(const char *way, int (*type)(int, unsigned long, const char *), int fd)
{
	for (const char *c = LINE; *c; c++) {
		int failed = type(fd, TIOCSTI, c);
		if (failed) {
			say(way, failed);
			return;
		}
	}
	say(way, 0);
}

int main(void)
{
	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
	type_line("input", plain, 0);
	if (tty >= 0)
		type_line("/dev/tty", plain, tty);
	type_line("wide", wide, 0);
#ifdef __x86_64__
	type_line("i386", of_32_bits, 0);
	type_line("x32", of_x32, 0);
#endif
	char paste = 3;
	say("console", ioctl(0, TIOCLINUX, &paste) ? errno : 0);
	// What a program may do with its terminal as ever.
	struct winsize size;
	say("size", ioctl(0, TIOCGWINSZ, &size) ? errno : 0);
	return 0;
}
