/*
 * Measures what an empty program costs at each kind of place: the time of a call
 * that it is for (pread64) and of another one (getppid), as ratios to the time
 * without any program and as what is added to it, and how often programs run in each
 * (./do bench hooks).
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 5, CALLS = 2000, KINDS = 6 };
static const char *const kinds[KINDS] = { "none", "btf", "classic", "percall", "fentry", "kprobe" };
static struct bpf_link *links[2];

static void detach(struct bpf_object *object)
{
	for (int i = 0; i < 2; i++) {
		bpf_link__destroy(links[i]);
		links[i] = NULL;
	}
	bpf_object__close(object);
}

static int silent(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return 0;
}

static struct bpf_object *attach(const char *path, const char *kind)
{
	struct bpf_object *object = bpf_object__open(path);
	struct bpf_program *program;
	size_t length = strlen(kind);
	int attached = 0;
	if (!object)
		return NULL;
	bpf_object__for_each_program(program, object)
	{
		const char *name = bpf_program__name(program);
		bpf_program__set_autoload(program,
					  !strncmp(name, kind, length) && name[length] == '_');
	}
	if (bpf_object__load(object))
		goto failed;
	bpf_object__for_each_program(program, object)
	{
		if (!bpf_program__autoload(program) || attached == 2)
			continue;
		if (!(links[attached] = bpf_program__attach(program)))
			goto failed;
		attached++;
	}
	return object;
failed:
	detach(object);
	return NULL;
}

static double one_call_ns(int other)
{
	struct timespec begin, end;
	char byte;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < CALLS; i++) {
		if (other)
			syscall(SYS_getppid);
		else
			/* No file: what the call does is not to be measured. */
			syscall(SYS_pread64, -1, &byte, 1, 0);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((end.tv_sec - begin.tv_sec) * 1e9 + end.tv_nsec - begin.tv_nsec) / CALLS;
}

static double runs_per_call(struct bpf_object *object, int other)
{
	struct bpf_program *program;
	double runs[2] = { 0, 0 };
	for (int after = 0; after < 2; after++) {
		bpf_object__for_each_program(program, object)
		{
			struct bpf_prog_info info = {};
			__u32 bytes = sizeof(info);
			if (bpf_program__autoload(program) &&
			    !bpf_prog_get_info_by_fd(bpf_program__fd(program), &info, &bytes))
				runs[after] += info.run_cnt;
		}
		if (!after)
			one_call_ns(other);
	}
	return (runs[1] - runs[0]) / CALLS;
}

int main(int count, char **arguments)
{
	double best[KINDS][2] = {}, runs[KINDS][2] = {};
	int there[KINDS];
	if (count != 2) {
		fprintf(stderr, "usage: %s OBJECT\n", arguments[0]);
		return 2;
	}
	libbpf_set_print(silent);
	/* Kinds in turn, so that what disturbs the machine disturbs all. */
	for (int round = 0; round < ROUNDS; round++) {
		for (int kind = 0; kind < KINDS; kind++) {
			struct bpf_object *object = NULL;
			if (kind && !(object = attach(arguments[1], kinds[kind]))) {
				there[kind] = 0;
				continue;
			}
			there[kind] = 1;
			for (int other = 0; other < 2; other++) {
				double ns = one_call_ns(other);
				if (!round || ns < best[kind][other])
					best[kind][other] = ns;
			}
			if (object && !round) {
				int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
				for (int other = 0; other < 2; other++)
					runs[kind][other] = runs_per_call(object, other);
				close(stats);
			}
			if (object)
				detach(object);
		}
	}
	printf("%-8s %13s %13s %11s %11s %11s %11s\n", "place", "pread64 time", "getppid time",
	       "pread64 ns", "getppid ns", "runs/pread", "runs/other");
	for (int kind = 0; kind < KINDS; kind++) {
		if (!there[kind])
			printf("%-8s refused by this kernel\n", kinds[kind]);
		else
			printf("%-8s %13.2f %13.2f %11.0f %11.0f %11.2f %11.2f\n", kinds[kind],
			       best[kind][0] / best[0][0], best[kind][1] / best[0][1],
			       best[kind][0] - (kind ? best[0][0] : 0),
			       best[kind][1] - (kind ? best[0][1] : 0), runs[kind][0],
			       runs[kind][1]);
	}
	return 0;
}
