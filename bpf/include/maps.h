/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State of the kernel side: configuration, maps and what hangs on a task.
 */
#ifndef FATHOM_MAPS_H
#define FATHOM_MAPS_H

#include "compat.h"
#include "config.h"
#include "layer_records.h"
#include "record.h"
#include "state.h"

#define NO_OFFSET ((__s64)(1ULL << 63))
#define NO_SIZE (~0ULL)

/* Set before loading: the verifier sees constants and drops what is off. In
 * sections of their own, so that the loader can fill each as a whole. The second
 * half of the descriptors is for 32-bit programs. */
const volatile struct probe_config config SEC(".rodata.config");
const volatile struct fault_config fault_config SEC(".rodata.faults");
#if HAVE_LAYERS
const volatile struct layer_config layer_config SEC(".rodata.layers");
#endif
const volatile struct call_desc descs[2 * MAX_NUMBERS] SEC(".rodata.descs");

/* Bumped after every rename and link on the machine: paths read before may be
 * stale. Never 0. */
__u32 rename_epoch = 1;

/* What the filter of paths says of a name. */
enum verdict { VERDICT_NONE, VERDICT_TAKEN, VERDICT_LEFT };

enum stash_flag {
	STASH_SHARED = 1, /* others may move the position */
	STASH_APPEND = 2, /* a write that goes to the end of the file */
	STASH_SEEKABLE = 4, /* regular file or block device */
	STASH_LEFT_OUT = 8, /* entered, but not to be recorded */
	STASH_COMPAT = 16, /* by a 32-bit program */
	STASH_BEFORE = 32, /* began before the task was taken in */
	STASH_LATE = 64, /* its files have not been looked at */
	STASH_SEGMENTS = 128, /* its record has no room for the number of segments */
	STASH_CREATED = 256, /* it opened a file that it made itself */
};

/* Moves on when a task that was not recorded may be from now on: by an odd number with bits
 * all over, so that it fits into one word with the address of a task (`left_task`). */
__u64 recorded_epoch = 1;

static __always_inline void recorded_from_now_on(void)
{
	__sync_fetch_and_add(&recorded_epoch, 0x9E3779B97F4A7C15ULL);
}

/* Another task may judge this one while it changes its flags itself (enum
 * task_flag). */
static __always_inline void set_flags(struct task_state *state, __u32 flags)
{
#if HAVE_FETCHING_ATOMICS
	__sync_fetch_and_or(&state->flags, flags);
#else
	state->flags |= flags;
#endif
}

static __always_inline void clear_flags(struct task_state *state, __u32 flags)
{
#if HAVE_FETCHING_ATOMICS
	__sync_fetch_and_and(&state->flags, ~flags);
#else
	state->flags &= ~flags;
#endif
	if (flags & (TASK_WAITS_FOR_EXEC | TASK_LEFT))
		recorded_from_now_on();
}

#if HAVE_TASK_STORAGE
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

/* The state of `task`, null when it is not recorded. */
static __always_inline struct task_state *task_state_of(struct task_struct *task)
{
	return bpf_task_storage_get(&tasks, task, NULL, 0);
}

/* The same for one that is to be recorded from now on; null when there is no
 * memory. */
static __always_inline struct task_state *task_state_make(struct task_struct *task)
{
	return bpf_task_storage_get(&tasks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The task ends: nothing to do, its state goes with it. */
static __always_inline void task_state_drop(struct task_struct *task)
{
}

/* A thread that executes a program has taken the id of its leader. */
static __always_inline void task_state_moves(struct task_struct *task, __u32 old_tid)
{
}
#else
/* By thread id, of the initial namespace. Run-time allocation is safe: these
 * programs run in the context of a task only. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 18);
	__type(key, __u32);
	__type(value, struct task_state);
} tasks SEC(".maps");

/* What a state begins as; too large for the stack. Never written. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct task_state);
} fresh_task SEC(".maps");

static __always_inline struct task_state *task_state_of(struct task_struct *task)
{
	__u32 tid = READ_TYPED(task, pid);
	return bpf_map_lookup_elem(&tasks, &tid);
}

static __always_inline struct task_state *task_state_make(struct task_struct *task)
{
	__u32 tid = READ_TYPED(task, pid), zero = 0;
	struct task_state *fresh = bpf_map_lookup_elem(&fresh_task, &zero);
	if (fresh)
		bpf_map_update_elem(&tasks, &tid, fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&tasks, &tid);
}

static __always_inline void task_state_drop(struct task_struct *task)
{
	__u32 tid = READ_TYPED(task, pid);
	bpf_map_delete_elem(&tasks, &tid);
}

static __always_inline void task_state_moves(struct task_struct *task, __u32 old_tid)
{
	__u32 tid = READ_TYPED(task, pid);
	struct task_state *state = tid == old_tid ? NULL : bpf_map_lookup_elem(&tasks, &old_tid);
	if (!state)
		return;
	bpf_map_update_elem(&tasks, &tid, state, BPF_ANY);
	bpf_map_delete_elem(&tasks, &old_tid);
}
#endif

/* The task that turned out last on a CPU to be none that is recorded: what it does next
 * ends without a look for its state. Its address, which another task may get, xor
 * recorded_epoch then, in one word, which is read and written at once; two tasks have the
 * same with a chance of 1 in 2^64. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} left_task SEC(".maps");

/* Whether `task`, the one that runs as a rule, is known not to be recorded. */
static __always_inline bool is_left(struct task_struct *task)
{
	__u32 zero = 0;
	__u64 *left = bpf_map_lookup_elem(&left_task, &zero);
	return !left || (*left ^ recorded_epoch) == (__u64)task;
}

/* The state of `task`, null when it is known not to be recorded. */
static __always_inline struct task_state *state_if_recorded(struct task_struct *task)
{
	return is_left(task) ? NULL : task_state_of(task);
}

/* Whether a task with this state is recorded. */
static __always_inline bool is_recorded(struct task_state *state)
{
	return state && !(state->flags & (TASK_WAITS_FOR_EXEC | TASK_LEFT));
}

/* The task that runs has turned out not to be recorded. Looks once more, after the epoch
 * was read: it may be taken in at this moment. */
static __noinline void remember_left(void)
{
#if defined(__TARGET_ARCH_x86)
	__u64 epoch = *(volatile __u64 *)&recorded_epoch;
#else
	/* Elsewhere the two could be read in the other order. */
	__u64 epoch = __sync_fetch_and_add(&recorded_epoch, 0);
#endif
	__u32 zero = 0;
	__u64 *left = bpf_map_lookup_elem(&left_task, &zero);
	if (left && !is_recorded(task_state_of(current_task())))
		*left = bpf_get_current_task() ^ epoch;
}

/* Processes whose tasks the iterator `adopt` takes in. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

/* The slot rings of all CPUs, one after the other: config.slots slots each. */
struct slot {
	__u64 words[SLOT_BYTES / 8];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set before loading */
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

/* Positions in a CPU's slot ring. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set before loading */
	__type(key, __u32);
	__type(value, struct slot_cursor);
} cursors SEC(".maps");

/* The wide ring of each CPU. */
struct wide_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set before loading */
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); /* set before loading */
	__type(key, __u32);
	__array(values, struct wide_ring);
} wide_rings SEC(".maps");

/* Counters of each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set before loading */
	__type(key, __u32);
	__type(value, struct cpu_stats);
} stats SEC(".maps");

/* Losses: exact, [CPU * MAX_SYSCALLS + call]. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set before loading */
	__type(key, __u32);
	__type(value, struct shed_value);
} lost SEC(".maps");

/* The same losses by process and file, as far as there is room. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct shed_key);
	__type(value, struct shed_value);
} shed SEC(".maps");

/* Where calls are counted: COUNTED_SIDE or 0; written by user space. */
volatile __u32 counting_side SEC(".data.counting");

/* Sums of calls, of which user space reads the first member. */
struct counted_value {
	struct shed_value sums;
	__u64 limit; /* is_slow() */
};

/* With config.counters or config.tail: calls by process and file, as far as there is
 * room. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* set before loading */
	__type(key, struct shed_key);
	__type(value, struct counted_value);
} counted SEC(".maps");

/* Those that found no room there, [CPU * MAX_SYSCALLS + call]. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set before loading */
	__type(key, __u32);
	__type(value, struct counted_value);
} counted_rest SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tail_control);
} tail_controls SEC(".maps");

static __always_inline struct tail_control *tail_control(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&tail_controls, &zero);
}

/* What a file handle stands for: a name of an inode under a mount. A hard link
 * or another mount gets a handle of its own, so that calls keep the path by
 * which they came. */
struct file_key {
	__u64 inode;
	__u64 dentry;
	__u64 mnt;
	__u64 ino;
	__u64 name_hash; /* d_name.hash_len */
	__u32 generation;
	__u32 dev;
};
struct file_value {
	__u64 path_hash; /* over the names up to the root */
	__u32 handle;
	__u32 epoch; /* rename_epoch when the path was checked last */
	__u32 sent; /* the record has reached the ring */
	__u32 verdict; /* enum verdict, of the path that path_hash stands for */
	__u32 removed; /* is_removed(), as it was sent */
	__u32 reserved; /* 0 */
};
/* Least recently used files make room; they are announced again when they come
 * back, and user space knows them by their identity. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 131072);
	__type(key, struct file_key);
	__type(value, struct file_value);
} files SEC(".maps");

/* Room to build records of variable length: three a CPU, claimed by `busy`. A call
 * with paths takes one, and another one for each file that it names; a program that
 * interrupts it takes the third. */
enum { SCRATCH_BYTES = 16384, SCRATCHES = 3 };
/* A walk from a name up to the root of its tree (files.h). It lies in map
 * memory, not on the stack, so that the verifier does not follow its values
 * through every turn of the loop. */
struct walk {
	__u64 dentry;
	__u64 mnt;
	__u64 hash;
	__u64 whole_hash; /* of the names that were sent, 0: torn by a rename */
	__u32 at; /* where the next component goes */
	__u32 end; /* do not write beyond */
	__u32 write; /* 0: only the hash is wanted */
	__u32 partial;
	__u32 mnt_ns; /* inode of the namespace that it ended in */
	__u32 removed; /* is_removed() of the name that file_handle() looks at */
};
/* The bios of a request that is ending (block.bpf.h); here for the same reason. */
struct bio_walk {
	__u64 bio; /* the next one */
	__u32 count; /* that were taken */
	__u32 left_out;
};
struct scratch {
	__u32 busy; /* claim() */
	__u32 index; /* which of the CPU's it is */
	__u64 turn; /* next_handle() */
	struct walk walk;
	struct file_key key; /* file_handle() */
	struct bio_walk bios;
	__u8 data[SCRATCH_BYTES];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline struct scratch *scratch_get(void)
{
	for (__u32 i = 0; i < SCRATCHES; i++) {
		__u32 key = i;
		struct scratch *s = bpf_map_lookup_elem(&scratches, &key);
		if (s && claim(&s->busy)) {
			s->index = i;
			return s;
		}
	}
	return NULL;
}

static __always_inline void scratch_put(struct scratch *s)
{
	release(&s->busy);
}

/* A loop whose state lies in a scratch: SCRATCH_STEP(name) { ... } is one turn,
 * which finds it as `scratch` and returns 0 to go on; SCRATCH_LOOP calls it and
 * gives the number of turns, `times` when no turn ended the loop: a multiple of
 * LOOP_BATCH. */
enum { LOOP_BATCH = 64 };
#if HAVE_LOOPS
#define SCRATCH_STEP(name)                                                                         \
	static __always_inline long name##_turn(struct scratch *scratch);                          \
	static long name(__u64 index, struct scratch **context)                                    \
	{                                                                                          \
		return name##_turn(*context);                                                      \
	}                                                                                          \
	static __always_inline long name##_turn(struct scratch *scratch)
#define SCRATCH_LOOP(times, name, scratch)                                                         \
	({                                                                                         \
		struct scratch *loop_scratch = (scratch);                                          \
		bpf_loop(times, name, &loop_scratch, 0);                                           \
	})
#else
/* Global functions, which are verified once, and loops of loops of them: thousands
 * of turns of anything else are more than the verifier follows. */
#define SCRATCH_STEP(name)                                                                         \
	static __always_inline long name##_turn(struct scratch *scratch);                          \
	__noinline int name(__u32 index)                                                           \
	{                                                                                          \
		struct scratch *scratch = bpf_map_lookup_elem(&scratches, &index);                 \
		return scratch ? name##_turn(scratch) : 1;                                         \
	}                                                                                          \
	__noinline int name##_batch(__u32 index)                                                   \
	{                                                                                          \
		for (__u32 turn = 0; turn < LOOP_BATCH; turn++)                                    \
			if (name(index))                                                           \
				return 1;                                                          \
		return 0;                                                                          \
	}                                                                                          \
	static __always_inline long name##_turn(struct scratch *scratch)
#define SCRATCH_LOOP(times, name, scratch)                                                         \
	({                                                                                         \
		__u32 loop_turn = 0;                                                               \
		while (loop_turn < (times) && !name##_batch((scratch)->index))                     \
			loop_turn += LOOP_BATCH;                                                   \
		loop_turn;                                                                         \
	})
#endif

#if HAVE_FETCHING_ATOMICS
/* The last file handle given out. */
__u32 last_handle;

static __always_inline __u32 next_handle(struct scratch *scratch)
{
	return __sync_fetch_and_add(&last_handle, 1) + 1;
}
#else
/* Each scratch of each CPU gives out every n-th number. */
static __always_inline __u32 next_handle(struct scratch *scratch)
{
	__u32 first = 1 + scratch->index * config.cpus + bpf_get_smp_processor_id();
	return first + scratch->turn++ * SCRATCHES * config.cpus;
}
#endif

static __always_inline struct cpu_stats *cpu_stats(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	return bpf_map_lookup_elem(&stats, &cpu);
}

#define COUNT(member)                                                                              \
	do {                                                                                       \
		struct cpu_stats *counted = cpu_stats();                                           \
		if (counted)                                                                       \
			__sync_fetch_and_add(&counted->member, 1);                                 \
	} while (0)

/* Sends `size` bytes, less than `limit`, a power of two, through the CPU's wide
 * ring. */
static __always_inline bool wide_output_below(void *data, __u64 size, __u64 limit)
{
	__u32 cpu = bpf_get_smp_processor_id();
	void *ring = bpf_map_lookup_elem(&wide_rings, &cpu);
	if (!ring || size >= limit)
		return false;
	/* Right before the call: older verifiers forget the bounds of a number
	 * that was compared in another register or saved meanwhile. */
	barrier_var(size);
	size &= limit - 1;
	return !bpf_ringbuf_output(ring, data, size, BPF_RB_NO_WAKEUP);
}

/* Sends `size` bytes of a scratch's data, less than there are. */
static __always_inline bool wide_output(void *data, __u64 size)
{
	return wide_output_below(data, size, SCRATCH_BYTES);
}

#endif
