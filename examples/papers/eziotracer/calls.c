/* calls THREADS CALLS BYTES: each thread reads so many items of so many bytes from a stream of its own.
 * Prints the nanoseconds of processor time that a call took. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long calls, bytes;
static double *spent;

static void *read_items(void *place)
{
	struct timespec began, ended;
	char *item = malloc(bytes);
	FILE *stream = fopen("/dev/zero", "r");
	if (!stream || !item || setvbuf(stream, NULL, _IOFBF, 1 << 20))
		exit(1);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
	for (long i = 0; i < calls; i++)
		if (fread(item, bytes, 1, stream) != 1)
			exit(1);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
	*(double *)place = (ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec);
	fclose(stream);
	free(item);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 3 ? atoi(argv[1]) : 0;
	if (threads < 1 || threads > 1024)
		return 2;
	calls = atol(argv[2]);
	bytes = atol(argv[3]);
	spent = calloc(threads, sizeof(*spent));
	pthread_t *ids = calloc(threads, sizeof(*ids));
	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, read_items, &spent[i]))
			return 1;
	double sum = 0;
	for (int i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		sum += spent[i];
	}
	printf("%.1f\n", sum / threads / calls);
	return 0;
}
