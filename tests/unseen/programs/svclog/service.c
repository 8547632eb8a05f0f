/* A service with a log file; rotation copies the log and empties it (copytruncate). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static FILE *logf_;

static void handle(int i)
{
	fprintf(logf_,
		"2024-05-17 10:%02d:%02d request=%d path=/api/v1/items/%d status=200 took=%dus\n",
		i / 60 % 60, i % 60, i, i * 31, i % 977);
}

int main(void)
{
	logf_ = fopen("service.log", "w");
	if (!logf_) {
		perror("service.log");
		return 1;
	}
	setvbuf(logf_, NULL, _IOFBF, 64 * 1024);
	pid_t rot = fork();
	if (rot == 0) {
		execl("/bin/sh", "sh", "-c",
		      "for n in 1 2 3; do sleep 0.3; cp service.log service.log.$n && : > "
		      "service.log; done",
		      (char *)0);
		_exit(127);
	}
	for (int i = 0; i < 150000; i++) {
		handle(i);
		if (i % 1000 == 0)
			usleep(9000);
	}
	if (fclose(logf_)) {
		perror("service.log");
		return 1;
	}
	waitpid(rot, NULL, 0);
	return 0;
}
