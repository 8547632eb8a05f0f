/* Library calls whose numbers are known: reads and writes through buffers, calls in calls, calls that
 * never return, a child that is in none, and one that has not returned when its process ends. */
#include "truth.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS = 129, ITEM = 100, LEAPS = 3, TURNS = 5 };

static jmp_buf back;
static volatile int calls;

/* Its frame is small, so that it covers the place of a call that never returned. */
static void touch(const char *directory, const char *name)
{
	static char path[4096];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	/* Nobody looks at what it returns: the files are not there. */
	if (access(path, F_OK) == 0)
		calls++;
}

__attribute__((noinline)) int inner(const char *directory, int leaps)
{
	touch(directory, leaps ? "leap" : "inner");
	if (leaps)
		longjmp(back, 1);
	return ++calls;
}

__attribute__((noinline)) int outer(const char *directory, int leaps)
{
	int result = inner(directory, leaps);
	calls++;
	return result;
}

__attribute__((noinline)) int last(const char *directory)
{
	touch(directory, "last");
	_exit(0);
}

static void streams(const char *directory)
{
	char path[4096], item[ITEM];
	snprintf(path, sizeof(path), "%s/stream", directory);
	memset(item, 'x', sizeof(item));
	FILE *stream = fopen(path, "w");
	if (!stream)
		exit(1);
	for (int i = 0; i < ITEMS; i++)
		fwrite(item, 1, sizeof(item), stream);
	fclose(stream);
	stream = fopen(path, "r");
	while (stream && fread(item, sizeof(item), 1, stream) == 1)
		;
	fclose(stream);
	snprintf(path, sizeof(path), "%s/absent", directory);
	if (fopen(path, "r"))
		exit(1);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	streams(argv[1]);
	for (int i = 0; i < TURNS; i++)
		outer(argv[1], 0);
	for (volatile int i = 0; i < LEAPS; i++)
		if (!setjmp(back))
			outer(argv[1], 1);
	touch(argv[1], "outside");
	pid_t child = fork();
	if (!child) {
		touch(argv[1], "child");
		_exit(0);
	}
	waitpid(child, NULL, 0);
	return last(argv[1]);
}
