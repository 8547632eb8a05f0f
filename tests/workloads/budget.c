/* Library calls whose numbers are known: two processes, three threads in each, which read a file byte
 * by byte without a buffer, in rounds with pauses. Each fread() makes one read(). The rounds take
 * three seconds, so that a recorder that a busy machine holds up still counts the last ones. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 100, BATCH = 40, PAUSE_US = 30000 };

static const char *path;

static void *reads(void *unused)
{
	(void)unused;
	FILE *stream = fopen(path, "r");
	if (!stream || setvbuf(stream, NULL, _IONBF, 0))
		exit(1);
	for (int round = 0; round < ROUNDS; round++) {
		char byte;
		for (int i = 0; i < BATCH; i++)
			if (fread(&byte, 1, 1, stream) != 1)
				exit(2);
		if (fseek(stream, 0, SEEK_SET))
			exit(3);
		usleep(PAUSE_US);
	}
	fclose(stream);
	return NULL;
}

static void process(void)
{
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, reads, NULL))
			exit(4);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	if (argc < 2 || chdir(argv[1]))
		return 5;
	path = "bytes";
	FILE *stream = fopen(path, "w");
	static const char bytes[BATCH];
	if (!stream || fwrite(bytes, 1, BATCH, stream) != BATCH || fclose(stream))
		return 6;
	pid_t child = fork();
	if (child < 0)
		return 7;
	process();
	if (!child)
		exit(0);
	int status;
	return waitpid(child, &status, 0) != child || status != 0;
}
