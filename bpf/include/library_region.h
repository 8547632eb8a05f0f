/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What crosses from the preloaded object (crates/preload/object) to the recorder: memory that every
 * process of a recording maps. It begins with struct region_pool. A region for each process follows,
 * of PROCESS_BYTES, that the process takes itself: struct region_process, the rings' heads at
 * RING_HEADS_AT, then definitions, threads and slots. The recorder trusts nothing in it.
 */
#ifndef FATHOM_LIBRARY_REGION_H
#define FATHOM_LIBRARY_REGION_H

enum region_limits {
	/* Processes that can be recorded at once. */
	POOL_PROCESSES = 128,
	/* Where the first process's region is. */
	POOL_HEADER_BYTES = 65536,
	PROCESS_BYTES = 134217728,
	/* Where things are in a process's region, and how many there are. */
	RING_HEADS_AT = 4096,
	RING_HEAD_BYTES = 512,
	/* In a ring's head: the slots that were taken by the recorder, and what found no room. */
	RING_TAIL_AT = 64,
	RING_LOSS_AT = 128,
	REGION_RINGS = 4,
	DEFINITIONS_AT = 65536,
	/* One byte for each definition, which the recorder writes. 1: its calls are counted only. */
	COUNTED_AT = 393216,
	/* Those counts: COUNT_SHARDS times one for each definition; a thread counts in one of them. */
	COUNTS_AT = 524288,
	COUNT_SHARDS = 16,
	MAX_DEFINITIONS = 1024,
	THREADS_AT = 1048576,
	MAX_REGION_THREADS = 16384,
	REGION_THREAD_BYTES = 1024,
	/* In a thread: the calls that it is in. */
	REGION_FRAMES_AT = 64,
	RINGS_AT = 33554432,
	RING_SLOTS = 131072,
	REGION_SLOT_BYTES = 128,
	/* Bytes of a path in a slot behind that of its call. */
	SLOT_PATH_BYTES = 120,
	/* Functions that the object can stand for. */
	MAX_STUBS = 256,
};

/* What a process's place in the pool is. */
enum region_state {
	REGION_FREE = 0,
	/* Its process fills it in. */
	REGION_TAKEN = 1,
	REGION_READY = 2,
};

/* What the recorder asks of the processes. */
enum region_order {
	REGION_RECORD = 0,
	/* The recording is over. */
	REGION_STOP = 1,
	/* Memory is scarce: calls are counted only. */
	REGION_COUNT = 2,
};

/* The beginning of the pool. */
struct region_pool {
	__u64 order; /* enum region_order */
	__u64 without_region; /* processes that found no region free */
	__u64 reserved[6]; /* 0 */
	__u64 states[128]; /* enum region_state; POOL_PROCESSES */
};

/* The beginning of a process's region. */
struct region_process {
	__u64 pid; /* as the process sees itself */
	__u64 registered_ns; /* when it took the region */
	__u64 threads; /* those that were ever used, from the first one on */
	__u64 definitions; /* that are there */
	__u64 unseen; /* calls in more than MAX_LIBRARY_DEPTH others, or without room for their state or name */
	__u64 thread_hint; /* where to look for a thread's place */
	__u64 reserved[2]; /* 0 */
};

/* A function that is called, in the library that it was found in. */
struct region_definition {
	__u32 stub; /* number of the name */
	__u32 path_len; /* bytes */
	__u8 path[248]; /* of the library, as the dynamic linker names it */
};

/* A thread; its calls follow. */
struct region_thread {
	__u32 tid; /* 0: the place is free */
	__u32 depth; /* calls that it is in */
};

/* A call that has not returned. */
struct region_frame {
	__u64 began_ns; /* 0: it is about to begin */
	__u64 sp; /* where its return address is */
	__u64 args[6]; /* LIBRARY_ARGS */
	__u32 definition; /* of the function */
	__s32 fd; /* of its stream, or as it was passed; -1 when there is none */
};

enum region_slot_kind {
	SLOT_CALL = 1,
	SLOT_PATH = 2,
};

/* A call that has ended. Slots with its path follow. */
struct region_slot {
	__u64 mark; /* position in the ring plus 1, above an enum region_slot_kind of 8 bits; written last */
	__u64 began_ns; /* when it was entered */
	__u64 dur_ns; /* until it returned, or until it was found abandoned */
	__u64 parent_ns; /* began_ns of the call that made it, 0 when there is none */
	__u64 args[6]; /* LIBRARY_ARGS */
	__s64 ret; /* what it returned */
	__u32 tid; /* thread */
	__s32 fd; /* as in struct region_frame, or as it was returned */
	__u16 definition; /* of the function */
	__u8 depth; /* calls that it was in */
	__u8 flags; /* enum library_call_flag */
	__u16 path_len; /* bytes */
	__u16 cpu; /* on which it ended */
	__u64 reserved[3]; /* 0 */
};

/* Calls that found no room in a ring, as struct shed_value has them. */
struct region_loss {
	__u64 count; /* calls */
	__u64 dur_ns; /* sum of durations */
	__u64 max_dur_ns; /* longest */
	__u64 first_at_ns; /* end of the first */
	__u64 last_at_ns; /* end of the last */
	__u64 hist[40]; /* durations, HIST_BUCKETS */
};

/* What the recorder writes into its copy of the object, for each name. */
struct object_function {
	__u8 name[256]; /* ends with NUL */
	__u8 libraries[120]; /* beginnings of names of libraries, each with a NUL; then a NUL */
	__u8 stream; /* place of its FILE; RESULT_ARG: it returns one; NO_ARG: none */
	__u8 fd; /* place of its descriptor, as above */
	__u8 path; /* place of its path, NO_ARG: none */
	__u8 in_registers; /* 1: registers pass all of its arguments */
	__u32 reserved; /* 0 */
};

#endif
