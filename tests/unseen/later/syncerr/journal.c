/* Journal of a till: every receipt is appended and made durable before the next customer. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct receipt {
	unsigned number;
	unsigned cents;
	char text[8184];
};

static int failures;

static void durable(int fd)
{
	for (int tries = 0; tries < 3; tries++) {
		if (fsync(fd) == 0)
			return;
		fprintf(stderr, "journal: %s, trying again\n", strerror(errno));
		failures++;
	}
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "journal";
	struct receipt r;
	int fd = open(name, O_CREAT | O_WRONLY | O_APPEND, 0644);

	if (fd < 0) {
		perror(name);
		return 1;
	}
	for (unsigned i = 1; i <= 700; i++) {
		memset(&r, 'a' + i % 26, sizeof r);
		r.number = i;
		r.cents = i * 37 % 5000;
		if (write(fd, &r, sizeof r) != sizeof r) {
			perror(name);
			return 1;
		}
		durable(fd);
		usleep(500);
	}
	close(fd);
	printf("700 receipts, %d times a sync had to be repeated\n", failures);
	return 0;
}
