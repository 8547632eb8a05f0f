/* Mail delivery into a maildir: written in tmp/, linked into new/, then the sender is told "250 OK". */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
	static char mail[24000];
	char tmp[64], dst[64];
	mkdir("tmp", 0700);
	mkdir("new", 0700);
	memset(mail, 'm', sizeof mail);
	for (int i = 0; i < 6000; i++) {
		int n = snprintf(mail, 200, "From: user%d@example.org\nSubject: message %d\n\n",
				 i % 50, i);
		mail[n] = 'm';
		snprintf(tmp, sizeof tmp, "tmp/1700000000.%05d.host", i);
		snprintf(dst, sizeof dst, "new/1700000000.%05d.host", i);
		int fd = open(tmp, O_CREAT | O_EXCL | O_WRONLY, 0600);
		if (fd < 0 || write(fd, mail, sizeof mail) != sizeof mail || close(fd)) {
			perror(tmp);
			return 1;
		}
		if (link(tmp, dst) || unlink(tmp)) {
			perror(dst);
			return 1;
		}
		puts("250 OK");
	}
	return 0;
}
