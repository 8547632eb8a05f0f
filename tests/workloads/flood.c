/*
 * A known number of calls that nothing else in the process makes. Usage:
 * flood FILE CALLS: waits for a line on standard input, reads 16 bytes of FILE
 * with preadv CALLS times, prints "done".
 */
#include "truth.h"

#include <sys/uio.h>

int main(int argc, char **argv)
{
	char bytes[16] = { 0 }, line;
	struct iovec vector = { bytes, sizeof bytes };
	if (argc != 3)
		truth_die("usage: flood FILE CALLS");
	int fd = open(argv[1], O_RDWR | O_CREAT, 0644);
	if (fd < 0 || pwrite(fd, bytes, sizeof bytes, 0) != sizeof bytes)
		truth_die(argv[1]);
	printf("ready\n");
	fflush(stdout);
	while (read(0, &line, 1) == 1 && line != '\n')
		;
	for (long i = atol(argv[2]); i > 0; i--)
		if (syscall(SYS_preadv, fd, &vector, 1, 0L, 0L) != sizeof bytes)
			truth_die("preadv");
	printf("done\n");
	return 0;
}
