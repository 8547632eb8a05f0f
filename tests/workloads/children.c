/* Forked processes whose first library calls are made by several threads at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 100, THREADS = 4 };

static pthread_barrier_t together;

static void *calls(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&together);
	FILE *stream = fopen("/dev/null", "r");
	if (!stream || fclose(stream))
		exit(1);
	return NULL;
}

static void child(void)
{
	pthread_t threads[THREADS];
	if (pthread_barrier_init(&together, NULL, THREADS))
		exit(2);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, calls, NULL))
			exit(3);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	exit(0);
}

int main(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return 4;
		if (!pid)
			child();
		int status;
		if (waitpid(pid, &status, 0) != pid || status)
			return 5;
	}
	return 0;
}
