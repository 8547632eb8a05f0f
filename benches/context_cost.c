/*
 * Calls in span contexts. Usage: context_cost MODE CALLS FILE
 *   none     no span is active
 *   same     all calls are in one span
 *   changed  each call is in another span than the one before it
 * Makes calls for 0.3 s first, in which fathom finds the variable. Prints the processor time per call of
 * pread of one byte of FILE, nanoseconds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct record {
	unsigned char trace[16], span[8], valid, flags;
	uint16_t attributes_bytes;
} __attribute__((packed, aligned(2)));

__attribute__((visibility("default"))) __thread void *volatile otel_thread_ctx_v1;

static long now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	long calls = atol(argv[2]);
	static struct record records[2] = {
		{ .trace = { 1 }, .span = { 1 }, .valid = 1 },
		{ .trace = { 1 }, .span = { 2 }, .valid = 1 },
	};
	int changed = !strcmp(argv[1], "changed");
	if (strcmp(argv[1], "none"))
		otel_thread_ctx_v1 = &records[0];
	int fd = open(argv[3], O_RDONLY);
	char byte;
	for (long until = now_ns(CLOCK_MONOTONIC) + 300000000; now_ns(CLOCK_MONOTONIC) < until;) {
		if (pread(fd, &byte, 1, 0) != 1)
			return 1;
		usleep(1000);
	}
	long began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (long i = 0; i < calls; i++) {
		if (changed)
			otel_thread_ctx_v1 = &records[i & 1];
		if (pread(fd, &byte, 1, 0) != 1)
			return 1;
	}
	printf("%.1f\n", (now_ns(CLOCK_THREAD_CPUTIME_ID) - began) / (double)calls);
	return 0;
}
