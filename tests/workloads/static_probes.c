/* Static probes whose numbers are known: jobs of threads with steps in them, jobs in jobs, jobs that
 * are left by longjmp(), an end without a beginning, and a job of a child. Each job makes three calls
 * of pwrite. What a job passes is prepared only for a listener. */
#include "truth.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/wait.h>

enum { THREADS = 3, JOBS = 50, LEAPS = 4, DEPTH = 5, WRITES = 3, BYTES = 100 };

#define SEMAPHORE(name) unsigned short name __attribute__((section(".probes"), used))
SEMAPHORE(app_job_semaphore);
SEMAPHORE(app_job_done_semaphore);

/* As <sys/sdt.h> of SystemTap makes them. */
#define PROBE(name, semaphore, arguments, ...)                                                     \
	__asm__ __volatile__(                                                                      \
		"990:\tnop\n"                                                                      \
		"\t.pushsection .note.stapsdt,\"\",\"note\"\n"                                     \
		"\t.balign 4\n"                                                                    \
		"\t.4byte 992f-991f, 994f-993f, 3\n"                                               \
		"991:\t.asciz \"stapsdt\"\n"                                                       \
		"992:\t.balign 4\n"                                                                \
		"993:\t.8byte 990b\n"                                                              \
		"\t.8byte _.stapsdt.base\n"                                                        \
		"\t.8byte " semaphore "\n"                                                         \
		"\t.asciz \"app\"\n"                                                               \
		"\t.asciz \"" name "\"\n"                                                          \
		"\t.asciz \"" arguments "\"\n"                                                     \
		"994:\t.balign 4\n"                                                                \
		"\t.popsection\n"                                                                  \
		"\t.ifndef _.stapsdt.base\n"                                                       \
		"\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"          \
		"\t.weak _.stapsdt.base\n"                                                         \
		"\t.hidden _.stapsdt.base\n"                                                       \
		"_.stapsdt.base:\t.space 1\n"                                                      \
		"\t.size _.stapsdt.base, 1\n"                                                      \
		"\t.popsection\n"                                                                  \
		"\t.endif\n" ::__VA_ARGS__)

static const char *directory;

/* The text has no NUL behind it: its length is the second argument. */
__attribute__((noinline)) static void job_starts(const char *text, int length)
{
	if (__atomic_load_n(&app_job_semaphore, __ATOMIC_RELAXED))
		PROBE("job__start", "app_job_semaphore", "8@%0 -4@%1", "r"(text), "r"(length));
}

__attribute__((noinline)) static void job_ends(void)
{
	if (__atomic_load_n(&app_job_done_semaphore, __ATOMIC_RELAXED))
		PROBE("job__done", "app_job_done_semaphore", "", "r"(0));
}

static void step(int number)
{
	PROBE("step__begin", "0", "-4@%0", "r"(number));
	PROBE("step__end", "0", "", "r"(0));
}

static int open_file(const char *name)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		exit(1);
	return fd;
}

static void writes(int fd)
{
	static const char bytes[BYTES];
	for (int i = 0; i < WRITES; i++)
		if (pwrite(fd, bytes, sizeof(bytes), 0) != sizeof(bytes))
			exit(1);
}

static void *thread(void *name)
{
	int fd = open_file(name);
	for (int i = 0; i < JOBS; i++) {
		job_starts("jobxxx", 3);
		step(1);
		writes(fd);
		step(2);
		job_ends();
	}
	return NULL;
}

__attribute__((noinline)) static void nested(int fd, int depth)
{
	/* Keeps the frames of the calls apart. */
	volatile char frame[256];
	frame[0] = depth;
	job_starts("nested", 6);
	writes(fd);
	if (depth > 1)
		nested(fd, depth - 1);
	job_ends();
	frame[1] = frame[0];
}

static jmp_buf back;

__attribute__((noinline)) static void leap(void)
{
	job_starts("leap", 4);
	longjmp(back, 1);
}

int main(int argc, char **argv)
{
	static const char *const names[THREADS] = { "first", "second", "third" };
	pthread_t threads[THREADS];
	if (argc != 2)
		return 1;
	directory = argv[1];
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread, (void *)names[i]))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	int fd = open_file("main");
	nested(fd, DEPTH);
	for (volatile int i = 0; i < LEAPS; i++)
		if (!setjmp(back))
			leap();
	/* Of the job that the last leap began. */
	job_ends();
	job_ends();
	if (fork() == 0) {
		/* Nothing has touched a constant in the child's memory yet. */
		char name[] = "child";
		job_starts(name, 5);
		writes(fd);
		job_ends();
		_exit(0);
	}
	return wait(NULL) < 0;
}
