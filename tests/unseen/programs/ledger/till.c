/* Six tills book into one journal; a lock on the file keeps the order, every booking is made durable. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static void till(int no)
{
	int fd = open("journal.txt", O_WRONLY | O_APPEND);
	if (fd < 0) {
		perror("journal.txt");
		_exit(1);
	}
	char line[256];
	for (int i = 0; i < 50; i++) {
		int n = snprintf(line, sizeof line, "till %d receipt %05d items %d total %d.%02d\n",
				 no, i, i % 9 + 1, i * 13 % 200, i % 100);
		if (flock(fd, LOCK_EX)) {
			perror("flock");
			_exit(1);
		}
		if (write(fd, line, n) != n || fdatasync(fd)) {
			perror("journal.txt");
			_exit(1);
		}
		flock(fd, LOCK_UN);
	}
	_exit(0);
}

int main(void)
{
	int fd = open("journal.txt", O_CREAT | O_WRONLY, 0644), d = open(".", O_RDONLY);
	if (fd < 0 || fsync(fd) || fsync(d)) {
		perror("journal.txt");
		return 1;
	}
	close(fd);
	close(d);
	for (int i = 0; i < 6; i++)
		if (fork() == 0)
			till(i);
	int st, bad = 0;
	while (wait(&st) > 0)
		bad |= st;
	return bad != 0;
}
