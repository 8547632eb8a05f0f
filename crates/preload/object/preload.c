/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Records calls of the functions that this object stands for (stubs.S), in memory that it shares with
 * the recorder (library_region.h).
 *
 * A call that has not returned lies on its thread's stack of calls there, one that has ended in a
 * ring. As the recorder looks at both after it has taken the kernel's records, it knows of every
 * system call in which library call it was made.
 */
#include "object.h"

#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

EXPORTED struct object_function fathom_functions[MAX_STUBS] = { { .name = { 1 } } };
EXPORTED __u64 fathom_function_count = MAX_STUBS;
EXPORTED char fathom_pool_path[256] = { 1 };

enum {
	CLOCK_MONOTONIC = 1,
	PAGE = 4096,
	PLACES = 8192,
	/* Places that are looked at for a call. */
	NEAR = 16,
	THREADS_NEAR = 64,
	/* Where glibc and musl keep the id of a thread; they differ. */
	TID_IN_GLIBC = 0x2d0,
	TID_IN_MUSL = 0x30,
	TID_IN_OLDER_MUSL = 0x38,
};

struct instant {
	__u64 seconds, ns;
};

/* Where a call returns to, whose return address leads here. */
struct place {
	__u64 address, rbx, sp, reserved;
};

/* Zero in a process that was just forked. */
static union {
	struct {
		__u64 is_started;
		/* The thread that starts it. */
		__u64 starter;
		/* Calls that did not wait for that. */
		__u64 unseen;
	};
	__u8 page[PAGE];
} life __attribute__((aligned(PAGE)));
static struct place places[PLACES];
static __u32 cannot;
static struct region_pool *pool;
HIDDEN __u8 *region;
/* Of the processes that this memory has belonged to, one forked from the other. */
static __u64 incarnation;
static __u32 tid_at;
static long (*clock)(long, struct instant *);
static long (*on_cpu)(__u32 *, void *, void *);

static __thread struct region_thread *own __attribute__((tls_model("initial-exec")));
static __thread __u64 own_incarnation __attribute__((tls_model("initial-exec")));

static __u64 now_ns(void)
{
	struct instant at;
	if (!clock || clock(CLOCK_MONOTONIC, &at))
		kernel(__NR_clock_gettime, CLOCK_MONOTONIC, (long)&at, 0);
	return at.seconds * 1000000000ul + at.ns;
}

/* Takes a region of the pool. */
static __u8 *take_region(void)
{
	for (__u32 i = 0; i < POOL_PROCESSES; i++) {
		__u64 is_free = REGION_FREE;
		if (!__atomic_compare_exchange_n(&pool->states[i], &is_free, REGION_TAKEN, 0,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__u8 *taken = (__u8 *)pool + POOL_HEADER_BYTES + (__u64)i * PROCESS_BYTES;
		struct region_process *process = (void *)taken;
		process->pid = kernel(__NR_getpid, 0, 0, 0);
		process->registered_ns = now_ns();
		region = taken;
		publish_definitions();
		STORE(&pool->states[i], REGION_READY);
		return taken;
	}
	ADD(&pool->without_region, 1);
	return 0;
}

static void map_pool(void)
{
	clock = (void *)find_in_kernel_page("__vdso_clock_gettime");
	on_cpu = (void *)find_in_kernel_page("__vdso_getcpu");
	__u32 tid = kernel(__NR_gettid, 0, 0, 0);
	static const __u32 known[] = { TID_IN_GLIBC, TID_IN_MUSL, TID_IN_OLDER_MUSL };
	__u64 thread;
	__asm__("mov %%fs:0, %0" : "=r"(thread));
	for (__u32 i = 0; i < 3 && thread && !tid_at; i++)
		if (*(__u32 *)(thread + known[i]) == tid)
			tid_at = known[i];
	long file =
		kernel6(__NR_openat, AT_FDCWD, (long)fathom_pool_path, O_RDWR | O_CLOEXEC, 0, 0, 0);
	if (file < 0)
		return;
	long at = kernel6(__NR_mmap, 0, POOL_HEADER_BYTES + (__u64)POOL_PROCESSES * PROCESS_BYTES,
			  PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	kernel(__NR_close, file, 0, 0);
	if (at > -PAGE && at < 0)
		return;
	if (kernel(__NR_madvise, (long)&life, PAGE, MADV_WIPEONFORK))
		return;
	pool = (void *)at;
}

/* The process is new. Threads that call meanwhile wait until it has a region. */
static __attribute__((noinline)) void start(void)
{
	if (!take_lock(&life.starter))
		return;
	if (!LOAD(&life.is_started)) {
		region = 0;
		forget_holder();
		if (!pool && !cannot) {
			find_all();
			map_pool();
			cannot = !pool;
		}
		incarnation++;
		struct region_process *process = pool ? (void *)take_region() : 0;
		STORE(&life.is_started, 1);
		if (process)
			ADD(&process->unseen,
			    __atomic_exchange_n(&life.unseen, 0, __ATOMIC_RELAXED));
	}
	let_go(&life.starter);
}

__attribute__((constructor)) static void constructed(void)
{
	if (!LOAD(&life.is_started))
		start();
}

/* Whether the place was free, and is this thread's now. */
static int take_place(__u64 number, __u32 tid)
{
	struct region_thread *place = (void *)(region + THREADS_AT + number * REGION_THREAD_BYTES);
	__u32 nobody = 0;
	if (LOAD(&place->tid) || !__atomic_compare_exchange_n(&place->tid, &nobody, tid, 0,
							      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return 0;
	own = place;
	own_incarnation = incarnation;
	return 1;
}

/* This thread's place in the region. */
static __attribute__((noinline)) struct region_thread *thread_place(void)
{
	struct region_process *process = (void *)region;
	__u32 tid = tid_at;
	if (tid)
		__asm__ volatile("mov %%fs:(%1), %0" : "=r"(tid) : "r"((__u64)tid_at));
	else
		tid = kernel(__NR_gettid, 0, 0, 0);
	__u64 used = LOAD(&process->threads), first = process->thread_hint;
	for (__u32 i = 0; i < THREADS_NEAR && i < used && used <= MAX_REGION_THREADS; i++)
		if (take_place((first + i) % used, tid)) {
			process->thread_hint = (first + i + 1) % used;
			return own;
		}
	process->thread_hint = first + THREADS_NEAR;
	/* Another thread may find a new place before this one takes it. */
	do {
		used = ADD(&process->threads, 1);
		if (used >= MAX_REGION_THREADS) {
			STORE(&process->threads, MAX_REGION_THREADS);
			return 0;
		}
	} while (!take_place(used, tid));
	return own;
}

static inline struct region_frame *frames_of(struct region_thread *thread)
{
	return (void *)((__u8 *)thread + REGION_FRAMES_AT);
}

static inline struct known_definition *known(const struct region_frame *frame)
{
	return &known_definitions[frame->definition % MAX_DEFINITIONS];
}

/* Whether memory can be read: the kernel reads eight bytes there before it refuses the number. */
static int is_readable(__u64 at)
{
	enum { NO_SUCH_WAY = -1, EFAULT_IS = -14 };
	return kernel6(__NR_rt_sigprocmask, NO_SUCH_WAY, at & ~7ul, 0, 8, 0, 0) != EFAULT_IS;
}

/* Bytes of the path at `text`, 0 if it cannot be read or is too long. */
static __u32 path_length(const char *text)
{
	__u32 n = 0;
	if (!text)
		return 0;
	do {
		if ((!n || !((__u64)(text + n) & (PAGE - 1))) && !is_readable((__u64)(text + n)))
			return 0;
		if (!text[n])
			return n;
	} while (++n < LONGEST_PATH);
	return 0;
}

static void lose(__u8 *head, __u64 dur_ns, __u64 now)
{
	struct region_loss *loss = (void *)(head + RING_LOSS_AT);
	if (!ADD(&loss->count, 1))
		STORE(&loss->first_at_ns, now);
	ADD(&loss->dur_ns, dur_ns);
	if (loss->max_dur_ns < dur_ns)
		loss->max_dur_ns = dur_ns;
	loss->last_at_ns = now;
	__u32 bucket = dur_ns ? 63 - __builtin_clzl(dur_ns) : 0;
	ADD(&loss->hist[bucket < 39 ? bucket : 39], 1);
}

/* Writes the call at `depth`, which is no longer among those in progress when it is read. */
static void write_call(struct region_thread *thread, __u32 depth, __u64 now, __s64 ret, __u32 flags)
{
	struct region_frame *frame = &frames_of(thread)[depth];
	struct object_function *function = known(frame)->function;
	__u64 dur_ns = now - frame->began_ns;
	__u64 number = ((__u64)thread - (__u64)region - THREADS_AT) / REGION_THREAD_BYTES;
	__u64 ring = number % REGION_RINGS;
	__u8 *head = region + RING_HEADS_AT + ring * RING_HEAD_BYTES;
	__u8 *slots = region + RINGS_AT + ring * RING_SLOTS * REGION_SLOT_BYTES;
	__u64 *next = (void *)head, *taken = (void *)(head + RING_TAIL_AT);
	__u32 path_len = 0, more = 0;
	const char *path = 0;
	if (function && function->path < ARGUMENTS && !(flags & ABANDONED)) {
		path = (const char *)frame->args[function->path];
		path_len = path_length(path);
		more = (path_len + SLOT_PATH_BYTES - 1) / SLOT_PATH_BYTES;
	}
	__u64 at = LOAD(next);
	do {
		if (at + 1 + more - LOAD(taken) > RING_SLOTS) {
			lose(head, dur_ns, now);
			return;
		}
	} while (!__atomic_compare_exchange_n(next, &at, at + 1 + more, 1, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	for (__u32 i = 0; i < more; i++) {
		__u8 *slot = slots + (at + 1 + i) % RING_SLOTS * REGION_SLOT_BYTES;
		__u32 rest = path_len - i * SLOT_PATH_BYTES;
		copy(slot + 8, path + i * SLOT_PATH_BYTES,
		     rest < SLOT_PATH_BYTES ? rest : SLOT_PATH_BYTES);
		STORE((__u64 *)slot, (at + 2 + i) << 8 | SLOT_PATH);
	}
	struct region_slot *slot = (void *)(slots + at % RING_SLOTS * REGION_SLOT_BYTES);
	slot->began_ns = frame->began_ns;
	slot->dur_ns = dur_ns;
	slot->parent_ns = depth ? frame[-1].began_ns : 0;
	for (__u32 i = 0; i < ARGUMENTS; i++)
		slot->args[i] = frame->args[i];
	slot->ret = ret;
	slot->tid = thread->tid;
	slot->fd = frame->fd;
	slot->definition = frame->definition;
	slot->depth = depth;
	slot->flags = flags;
	slot->path_len = path_len;
	__u32 cpu = 0;
	if (on_cpu)
		on_cpu(&cpu, 0, 0);
	slot->cpu = cpu;
	STORE(&slot->mark, (at + 1) << 8 | SLOT_CALL);
}

/* Where the return address of a call whose arguments may be on the stack is kept. A place is used
 * again while its call may still return only if its part of the table is full, and another call has
 * taken the place of its return address on the stack. */
static struct place *place_of(__u64 *slot)
{
	__u64 sp = (__u64)slot;
	__u32 first = (__u32)(sp >> 3) * 2654435761u >> 19;
	for (__u32 i = 0; i < NEAR; i++) {
		struct place *place = &places[(first + i) % PLACES];
		__u64 nobody = 0;
		if (!__atomic_load_n(&place->sp, __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&place->sp, &nobody, sp, 0, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return place;
	}
	for (__u32 i = 0; i < NEAR && *slot != (__u64)fathom_return; i++) {
		struct place *place = &places[(first + i) % PLACES];
		if (place->sp == sp)
			return place;
	}
	return 0;
}

/* A call of a function that is called more often than the budget allows. Threads count in
 * different places, as far as possible: those of one place would wait for each other. */
static void count_only(__u32 definition)
{
	__u64 thread;
	__asm__("mov %%fs:0, %0" : "=r"(thread));
	__u64 shard = (thread >> 12) * 0x9E3779B97F4A7C15ul >> 60;
	ADD((__u64 *)(region + COUNTS_AT) + shard * MAX_DEFINITIONS + definition, 1);
}

static __s32 descriptor(__u64 stream, __u32 fileno_at)
{
	return stream ? *(__s32 *)(stream + fileno_at) : -1;
}

/* Calls that cannot return any more, as the stack ends at `sp`. */
static void drop_abandoned(struct region_thread *thread, __u64 sp, int is_live)
{
	__u64 now = 0;
	while (thread->depth) {
		__u32 depth = thread->depth - 1;
		struct region_frame *frame = &frames_of(thread)[depth];
		if (depth < DEPTH && (frame->sp > sp || (frame->sp == sp && is_live)))
			break;
		if (!now)
			now = now_ns();
		if (depth < DEPTH)
			write_call(thread, depth, now, 0, ABANDONED);
		STORE(&thread->depth, depth);
	}
}

struct next {
	void *real;
	/* 0: nothing is recorded; 1: a frame; else the place of the return address. */
	void *how;
};

HIDDEN __s64 fathom_missing(void)
{
	return 0;
}

HIDDEN struct next fathom_enter(__u32 stub, __u64 *args, __u64 *slot)
{
	if (UNLIKELY(!LOAD(&life.is_started)))
		start();
	struct target target = find(stub, *slot);
	if (UNLIKELY(!target.real))
		/* A weak symbol that nothing else defines. */
		return (struct next){ fathom_missing, 0 };
	struct next plain = { target.real, 0 };
	if (UNLIKELY(target.definition == NOT_RECORDED))
		return plain;
	if (UNLIKELY(!LOAD(&life.is_started))) {
		ADD(&life.unseen, 1);
		return plain;
	}
	if (UNLIKELY(!region))
		return plain;
	struct region_process *process = (void *)region;
	__u64 order = LOAD(&pool->order);
	if (UNLIKELY(order != REGION_RECORD)) {
		if (order == REGION_COUNT)
			ADD(&process->unseen, 1);
		return plain;
	}
	if (UNLIKELY(target.definition == UNSEEN)) {
		ADD(&process->unseen, 1);
		return plain;
	}
	if (LOAD(region + COUNTED_AT + target.definition)) {
		count_only(target.definition);
		return plain;
	}
	struct region_thread *thread = own;
	if (UNLIKELY(own_incarnation != incarnation || !thread))
		thread = thread_place();
	__u64 sp = (__u64)slot;
	if (LIKELY(thread != 0) && thread->depth)
		drop_abandoned(thread, sp, *slot == (__u64)fathom_return);
	if (UNLIKELY(!thread || thread->depth >= DEPTH)) {
		ADD(&process->unseen, 1);
		return plain;
	}
	struct object_function *function = &fathom_functions[stub];
	struct place *place = (void *)1;
	if (!function->in_registers) {
		place = place_of(slot);
		if (!place) {
			ADD(&process->unseen, 1);
			return plain;
		}
		place->address = *slot;
	}
	/* A signal's handler takes the next frame. */
	struct region_frame *frame = &frames_of(thread)[thread->depth];
	frame->began_ns = 0;
	frame->sp = sp;
	STORE(&thread->depth, thread->depth + 1);
	for (__u32 i = 0; i < ARGUMENTS; i++)
		frame->args[i] = args[i];
	frame->definition = target.definition;
	frame->fd = -1;
	if (function->stream < ARGUMENTS)
		frame->fd = descriptor(args[function->stream], known(frame)->fileno_at);
	else if (function->fd < ARGUMENTS)
		frame->fd = args[function->fd];
	STORE(&frame->began_ns, now_ns());
	return (struct next){ target.real, place };
}

/* The call whose return address was at `slot` returns. */
HIDDEN void fathom_leave(__u64 sp, __s64 ret)
{
	if (UNLIKELY(!LOAD(&life.is_started) || !region || own_incarnation != incarnation || !own))
		return;
	__u64 now = now_ns();
	struct region_thread *thread = own;
	while (thread->depth && thread->depth <= DEPTH) {
		__u32 depth = thread->depth - 1;
		struct region_frame *frame = &frames_of(thread)[depth];
		if (frame->sp > sp)
			return;
		if (frame->sp == sp) {
			struct object_function *function = known(frame)->function;
			if (function && function->stream == RESULT)
				frame->fd = descriptor(ret, known(frame)->fileno_at);
			else if (function && function->fd == RESULT)
				frame->fd = ret;
			write_call(thread, depth, now, ret, 0);
			STORE(&thread->depth, depth);
			return;
		}
		write_call(thread, depth, now, 0, ABANDONED);
		STORE(&thread->depth, depth);
	}
}

struct back {
	__u64 address, rbx;
};

HIDDEN struct back fathom_returns(struct place *place, __s64 ret)
{
	struct back back = { place->address, place->rbx };
	fathom_leave(place->sp, ret);
	STORE(&place->sp, 0);
	return back;
}

/* The stack is cut off at `sp`: calls below have ended. */
static void cut(__u64 sp)
{
	if (LOAD(&life.is_started) && region && own_incarnation == incarnation && own)
		drop_abandoned(own, sp - 1, 0);
}

/* A jump to where setjmp() was called with `buffer`. */
HIDDEN void *fathom_leaps(__u32 number, const __u64 *buffer, __u64 *slot)
{
	enum { STACK_POINTER = 6, NEAR_BYTES = 1 << 30 };
	struct target target = find(number, *slot);
	/* glibc keeps it encoded, musl as it is; what is neither is no place on this stack. */
	__u64 sp = buffer[STACK_POINTER], guard;
	__asm__("mov %%fs:0x30, %0" : "=r"(guard));
	__u64 decoded = (sp >> 17 | sp << 47) ^ guard;
	if (decoded - (__u64)slot < NEAR_BYTES)
		cut(decoded);
	else if (sp - (__u64)slot < NEAR_BYTES)
		cut(sp);
	return target.real;
}

extern __u64 _Unwind_GetCFA(void *context) __attribute__((weak));

/* What the unwinder tells (Itanium C++ ABI); of an exception that is caught, `until` is the stack
 * pointer where it is. */
struct exception {
	__u64 class;
	void *cleanup;
	__u64 forced, until;
};

/* A frame of ours is unwound, whose call's return address was so far from its stack pointer. */
static int unwinds(int actions, const struct exception *exception, void *context, __s64 distance)
{
	enum { CLEANUP_PHASE = 2, CONTINUE_UNWIND = 8 };
	if (!(actions & CLEANUP_PHASE))
		return CONTINUE_UNWIND;
	if (_Unwind_GetCFA)
		cut(_Unwind_GetCFA(context) + distance + 1);
	else if (!exception->forced)
		cut(exception->until);
	return CONTINUE_UNWIND;
}

HIDDEN int fathom_unwinds_frame(int version, int actions, __u64 class, struct exception *exception,
				void *context)
{
	/* common: 208 bytes, the frame pointer that it keeps, and itself. */
	return unwinds(actions, exception, context, 216);
}

HIDDEN int fathom_unwinds_place(int version, int actions, __u64 class, struct exception *exception,
				void *context)
{
	return unwinds(actions, exception, context, -8);
}
