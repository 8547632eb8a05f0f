/* Span contexts whose calls are known: the calls of a context are on a file that has the id of its span
 * in its name. The variable is in this program (IN_PROGRAM), in a library that it was linked with, or in
 * one that it opens: DIRECTORY PHASE [LIBRARY]. Before each phase it makes calls in a context of its own
 * until it gets a line, by which fathom must have found the variable. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, JOBS = 40, TASKS = 5, ROUNDS = 30, PAGE = 4096 };

struct record {
	unsigned char trace[16], span[8], valid, flags;
	uint16_t attributes_bytes;
	unsigned char attributes[612];
} __attribute__((packed, aligned(2)));

#ifdef IN_PROGRAM
__attribute__((visibility("default"))) __thread void *volatile otel_thread_ctx_v1;
static void publish_here(void *record)
{
	otel_thread_ctx_v1 = record;
}
static void (*publish)(void *) = publish_here;
#else
static void (*publish)(void *);
#endif

static const char *directory;
static FILE *spans;
static pthread_mutex_t spans_lock = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t wall_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void big_endian(unsigned char *to, uint64_t number)
{
	for (int i = 0; i < 8; i++)
		to[i] = number >> (56 - 8 * i);
}

static void attribute(struct record *record, int key, const char *value)
{
	unsigned char *end = record->attributes + record->attributes_bytes;
	size_t length = strlen(value);
	end[0] = key;
	end[1] = length;
	memcpy(end + 2, value, length);
	record->attributes_bytes += 2 + length;
}

static void identify(struct record *record, uint64_t span)
{
	big_endian(record->trace, 0x1234);
	big_endian(record->trace + 8, span >> 32);
	big_endian(record->span, span);
	uint64_t start = wall_ns();
	pthread_mutex_lock(&spans_lock);
	fprintf(spans,
		"{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":\"%016x%016lx\","
		"\"spanId\":\"%016lx\",\"name\":\"exported %lx\",\"startTimeUnixNano\":\"%lu\","
		"\"endTimeUnixNano\":\"%lu\"}]}]}]}\n",
		0x1234, (unsigned long)(span >> 32), (unsigned long)span, (unsigned long)span,
		(unsigned long)start, (unsigned long)start + 1000);
	fflush(spans);
	pthread_mutex_unlock(&spans_lock);
}

static struct record *make(uint64_t span)
{
	struct record *record = calloc(1, sizeof(*record));
	identify(record, span);
	attribute(record, 1, "GET");
	attribute(record, 0, "/old");
	attribute(record, 9, "no such key");
	attribute(record, 0, "/task");
	record->valid = 1;
	return record;
}

/* Three calls on a file with this name: open, write, close. */
static void on_file(const char *name)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/in-%s", directory, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || write(fd, "x", 1) != 1 || close(fd))
		fail(path);
}

static void in_span(uint64_t span)
{
	char name[32];
	snprintf(name, sizeof(name), "%016lx", (unsigned long)span);
	on_file(name);
}

static void in_state(void *record, const char *state)
{
	publish(record);
	on_file(state);
	publish(NULL);
	on_file("none");
}

static void *thread(void *argument)
{
	uint64_t number = (uintptr_t)argument << 32;
	for (int i = 1; i <= JOBS; i++) {
		struct record *record = make(number | i);
		publish(record);
		in_span(number | i);
		publish(NULL);
		on_file("none");
	}
	return NULL;
}

/* One that has never used the variable. */
static void *idle_thread(void *argument)
{
	on_file("none");
	return argument;
}

/* Tasks that take turns in one thread, each with a record of its own. */
static void tasks(uint64_t number)
{
	struct record *records[TASKS];
	for (int i = 0; i < TASKS; i++)
		records[i] = make(number | (i + 1));
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < TASKS; i++) {
			publish(records[i]);
			in_span(number | (i + 1));
		}
	}
	publish(NULL);
}

/* The thread's only record, which is changed. */
static void in_place(uint64_t number)
{
	struct record *record = make(number | 1);
	publish(record);
	for (int i = 1; i <= ROUNDS; i++) {
		*(volatile unsigned char *)&record->valid = 0;
		on_file("none");
		identify(record, number | i);
		*(volatile unsigned char *)&record->valid = 1;
		in_span(number | i);
	}
	publish(NULL);
}

static void hostile(uint64_t number)
{
	struct record *record = make(number);
	for (int valid = 0; valid < 256; valid += 1 + (valid > 2) * 60) {
		if (valid == 1)
			continue;
		record->valid = valid;
		in_state(record, "none");
	}
	record->valid = 1;
	memset(record->span, 0, sizeof(record->span));
	in_state(record, "none");
	identify(record, number);
	memset(record->trace, 0, sizeof(record->trace));
	in_state(record, "none");
	/* Addresses of nothing. */
	in_state((void *)8, "unreadable");
	in_state((void *)0xdead000000000000ul, "unreadable");
	in_state((void *)-8l, "unreadable");
	char *pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || munmap(pages + PAGE, PAGE))
		fail("mmap");
	/* One that ends where its memory does, with attributes behind that, and one cut off. */
	struct record *last = (void *)(pages + PAGE - 28);
	memcpy(last, make(number | 1), 28);
	publish(last);
	in_span(number | 1);
	publish(NULL);
	memmove(pages + PAGE - 26, last, 26);
	in_state(pages + PAGE - 26, "unreadable");
	/* More attributes than a record may have, which are nonsense. */
	char *large = malloc(1 << 17);
	memset(large, 0xff, 1 << 17);
	memcpy(large, make(number | 2), 26);
	publish(large);
	in_span(number | 2);
	publish(NULL);
}

/* What the process says of itself: OTEP 4719. */
static unsigned char *field(unsigned char *to, int number, const void *bytes, size_t length)
{
	*to++ = number << 3 | 2;
	if (length > 127)
		*to++ = (length & 127) | 128;
	*to++ = length > 127 ? length >> 7 : length;
	memcpy(to, bytes, length);
	return to + length;
}

static unsigned char *text(unsigned char *to, int number, const char *text)
{
	return field(to, number, text, strlen(text));
}

static void publish_process(const char *service)
{
	struct {
		char signature[8];
		uint32_t version, bytes;
		uint64_t published_ns;
		unsigned char *payload;
	} * header;
	int fd = memfd_create("OTEL_CTX", 0);
	if (fd < 0 || ftruncate(fd, PAGE))
		fail("memfd_create");
	header = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (header == MAP_FAILED)
		fail("mmap");
	close(fd);
	madvise(header, PAGE, MADV_DONTFORK);
	static unsigned char message[1024];
	unsigned char value[512], pair[512], array[512], resource[512], *end, *all = array;
	end = text(value, 1, service);
	unsigned char *pair_end = text(pair, 1, "service.name");
	pair_end = field(pair_end, 2, value, end - value);
	unsigned char *resource_end = field(resource, 1, pair, pair_end - pair);
	unsigned char *message_end = field(message, 1, resource, resource_end - resource);
	const char *keys[] = { "http_route", "http_method" };
	for (int i = 0; i < 2; i++) {
		end = text(value, 1, keys[i]);
		all = field(all, 1, value, end - value);
	}
	end = field(value, 5, array, all - array);
	pair_end = text(pair, 1, "threadlocal.attribute_key_map");
	pair_end = field(pair_end, 2, value, end - value);
	message_end = field(message_end, 2, pair, pair_end - pair);
	header->version = 2;
	header->bytes = message_end - message;
	header->published_ns = wall_ns();
	header->payload = message;
	__sync_synchronize();
	memcpy(header->signature, "OTEL_CTX", 8);
}

/* Makes calls in a context of its own until there is a line to read. */
static void wait_for_line(const char *phase)
{
	struct record *record = make(0xaaaaul);
	publish(record);
	printf("%s\n", phase);
	fflush(stdout);
	struct pollfd input = { .fd = 0, .events = POLLIN };
	do {
		if (access(directory, F_OK))
			fail(directory);
	} while (poll(&input, 1, 5) == 0);
	for (char byte = 0; byte != '\n';)
		if (read(0, &byte, 1) != 1)
			exit(1);
	publish(NULL);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	directory = argv[1];
	char path[4096];
	snprintf(path, sizeof(path), "%s/spans.jsonl", directory);
	spans = fopen(path, "a");
	if (!spans)
		fail(path);
	if (argc > 3) {
		void *library = dlopen(argv[3], RTLD_NOW);
		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		publish = (void (*)(void *))dlsym(library, "publish");
	}
#ifndef IN_PROGRAM
	if (!publish)
		publish = (void (*)(void *))dlsym(RTLD_DEFAULT, "publish");
#endif
	if (!publish)
		return 3;
	publish_process(argv[2]);
	wait_for_line(argv[2]);
	if (strcmp(argv[2], "first")) {
		in_state(make(0x500ul << 32), "0000050000000000");
		return 0;
	}
	on_file("none");
	pthread_t threads[THREADS + 1];
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, thread, (void *)(i + 1));
	pthread_create(&threads[THREADS], NULL, idle_thread, NULL);
	for (int i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	tasks(0x100ul << 32);
	in_place(0x200ul << 32);
	hostile(0x300ul << 32);
	/* The child is in the span of the parent, and then in one of its own. */
	struct record *around = make(0x400ul << 32);
	publish(around);
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		in_span(0x400ul << 32);
		publish(make(0x401ul << 32));
		in_span(0x401ul << 32);
		publish(NULL);
		on_file("none");
		_exit(0);
	}
	if (waitpid(child, NULL, 0) != child)
		fail("waitpid");
	in_span(0x400ul << 32);
	/* Another program: this context is gone. */
	fflush(NULL);
	char *again[] = { argv[0], argv[1], "second", argc > 3 ? argv[3] : NULL, NULL };
	execv("/proc/self/exe", again);
	fail("execv");
}
