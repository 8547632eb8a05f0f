/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the parts of the preloaded object share. It needs no library: it finds what it needs of the C
 * library by weak symbols, calls the kernel itself, and touches neither errno nor vector registers.
 */
#ifndef FATHOM_OBJECT_H
#define FATHOM_OBJECT_H

#include <linux/types.h>

#include "library_region.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORTED __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define LOAD(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define ADD(p, n) __atomic_fetch_add(p, n, __ATOMIC_RELAXED)

enum {
	/* As in bpf/include/record.h. */
	ARGUMENTS = 6,
	RESULT = 254,
	NONE = 255,
	DEPTH = 8,
	ABANDONED = 8,
	LONGEST_PATH = 4096,
	/* Functions behind the stubs, of which nothing is recorded: dlclose() and those of stubs.S. */
	OTHERS = 5,
	/* Instead of the number of a definition: nobody asked for the function, and it found no room
	 * or no place in the table in time, so that its call is counted as unseen. */
	NOT_RECORDED = 0xffffffff,
	UNSEEN = 0xfffffffe,
};

/* Where a call goes. */
struct target {
	void *real;
	__u32 definition;
};

/* What the recorder writes into its copy. */
extern struct object_function fathom_functions[MAX_STUBS];
extern __u64 fathom_function_count;
extern char fathom_pool_path[256];

/* resolve.c */
HIDDEN void find_all(void);
HIDDEN struct target find(__u32 stub, __u64 caller);
HIDDEN __u64 find_in_kernel_page(const char *name);
HIDDEN void publish_definitions(void);
HIDDEN void forget_holder(void);

/* Of a definition: the function, and where a FILE of its library has its descriptor. */
struct known_definition {
	struct object_function *function;
	__u64 fileno_at;
};
extern HIDDEN struct known_definition known_definitions[MAX_DEFINITIONS];

/* preload.c */
extern HIDDEN __u8 *region;
HIDDEN extern char fathom_return[];

static inline long kernel6(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long kernel(long number, long a, long b, long c)
{
	return kernel6(number, a, b, c, 0, 0, 0);
}

/* Takes a lock that its holder keeps for a short time; 0 if the thread has it already, as in a signal's
 * handler, or does not get it within about a second: a fork() by another thread may leave a lock behind
 * that nobody lets go. */
HIDDEN int take_lock(__u64 *holder);

static inline void let_go(__u64 *holder)
{
	STORE(holder, 0);
}

/* Loops that no compiler makes calls of the C library of. */
static inline void copy(void *to, const void *from, __u64 bytes)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

/* The compiler calls it. */
HIDDEN void *memset(void *to, int value, __SIZE_TYPE__ bytes);

static inline __u64 length(const char *text)
{
	__u64 n = 0;
	while (text[n]) {
		__asm__ volatile("");
		n++;
	}
	return n;
}

static inline int same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

#endif
