/*
 * Threads that write files of their own, each with fwrite of ITEM bytes. Usage:
 *
 *     writers DIR THREADS BYTES ITEM
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *dir;
static long bytes, item;

static void *write_file(void *number)
{
	char path[4096], *content = calloc(1, (size_t)item);
	snprintf(path, sizeof path, "%s/file.%ld", dir, (long)number);
	FILE *file = fopen(path, "w");
	if (!file || !content)
		exit(1);
	for (long left = bytes; left > 0; left -= item)
		if (fwrite(content, 1, (size_t)item, file) != (size_t)item)
			exit(1);
	if (fclose(file))
		exit(1);
	free(content);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[256];
	if (argc != 5)
		return 2;
	dir = argv[1], bytes = atol(argv[3]), item = atol(argv[4]);
	for (long i = 0; i < atol(argv[2]) && i < 256; i++)
		if (pthread_create(&threads[i], NULL, write_file, (void *)i))
			return 1;
	for (long i = 0; i < atol(argv[2]) && i < 256; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
