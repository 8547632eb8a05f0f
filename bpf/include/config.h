/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What user space sets before or while the programs run: how each call is recorded, options,
 * filters. The Rust side is generated from this file as from record.h, and the same syntax applies.
 */
#ifndef FATHOM_CONFIG_H
#define FATHOM_CONFIG_H

#include "record.h"

enum call_desc_flag {
	/* The return value is the number of bytes moved. */
	DESC_RET_BYTES = 1,
	/* The return value is a new descriptor: its file is the call's file. */
	DESC_RET_FD = 2,
	/* I/O at the position of the descriptor, which moves by the result. */
	DESC_POSITION = 4,
	/* Written as a wide record. */
	DESC_WIDE = 8,
	/* Gives names: cached paths must be checked again. */
	DESC_RENAMES = 16,
	/* An address is returned: only -4095 to -1 are errors. */
	DESC_RET_ADDR = 32,
	/* Writes data: O_APPEND decides where. */
	DESC_WRITES = 64,
	/* Changes the working directory, or the root directory, which is the file
	 * of the call. */
	DESC_CHDIR = 128,
};

/* What of a call is watched. */
enum call_watch {
	/* The call is recorded. */
	WATCH_CALL = 1,
	/* Operations of AIO begin with it (io_submit), are reaped by it
	 * (io_getevents), or end with it (io_destroy, exit_group). */
	WATCH_AIO_SUBMIT = 2,
	WATCH_AIO_REAP = 4,
	WATCH_AIO_DESTROY = 8,
	WATCH_AIO_EXIT = 16,
};

/* How to record one call: where each argument stands (0 to 5, or NO_ARG). */
struct call_desc {
	__u16 syscall; /* row in bpf/syscalls.def */
	__u8 selected; /* enum call_watch; 0: the call is not recorded */
	__u8 flags; /* enum call_desc_flag */
	__u8 fd; /* descriptor */
	__u8 fd2; /* second descriptor */
	__u8 ring; /* descriptor without a file */
	__u8 dirfd1; /* directory of string1 */
	__u8 string1; /* path or link target */
	__u8 dirfd2; /* directory of string2 */
	__u8 string2; /* second path, or a text such as the name of an attribute */
	__u8 size; /* bytes asked for, or length */
	__u8 iov; /* segments */
	__u8 iovcnt; /* their number */
	__u8 offset; /* position by value */
	__u8 offset_ptr; /* position by pointer */
	__u8 offset_ptr2; /* position in the second file by pointer */
	__u8 aux; /* argument that goes to aux */
	__u8 extra[3]; /* arguments that go to extra[] */
	__u8 stat; /* struct stat to read identity from */
	__u8 statx; /* struct statx to read identity from */
	__u8 how; /* struct open_how */
	__u8 path1; /* 1: string1 is a path, 0: text */
	__u8 path2; /* 1: string2 is a path, 0: text */
	__u8 releases; /* 1: gives the descriptor up */
	__u8 seeks; /* 1: moves the position without moving data */
	__u8 offset_hi; /* upper half of the offset */
	__u8 offset_shift; /* bits that the offset is to be shifted by */
	__u8 size_hi; /* upper half of the size, or SIGNED_ARG */
	__u8 stat_ino; /* where the struct stat holds the inode number */
	__u8 offset2; /* position in the second file by value */
	__u8 all_types; /* 1: not recorded unless all types of files are */
	__u8 mapped; /* address whose mapping tells the file, or RESULT_ARG */
	__u8 buf; /* memory that the data moves from or to */
	__u8 lock; /* struct that a command of fcntl takes */
	__u8 structure; /* struct that is kept */
	__u8 structure_bytes; /* what is kept of it */
	__u8 structure_out; /* 1: filled in by a call that succeeds, 2: that returns more than 0 */
	__u8 credentials; /* 1: changes the user of the task, and users are filtered */
	__u8 string3; /* a further text */
	__u8 null_path; /* 1: a null path stands for the descriptor before it */
	__u8 chroots; /* 1: with DESC_CHDIR, the root directory */
	__u8 signed_extra; /* bit i: extra[i] is signed, for 32-bit programs */
	__u8 value; /* value of an extended attribute, with CONTENT_MODE_PLAIN */
	__u8 plain; /* 1: PLAIN_FD, PLAIN_SIZE, PLAIN_OFFSET, and what wide records have besides */
	__u8 moves; /* 1: it uses, moves or gives up the position of a descriptor */
	__u8 known; /* 1: the call has a name; `syscall` may be WAIT_UNRECORDED or more */
	__u8 any_type; /* 1: recorded whatever the type of its file */
	__u8 early; /* struct that the call may overwrite, read at its entry */
	__u8 early_bytes; /* what is kept of it, EARLY_BYTES at most */
	__u8 structure_len; /* how much of `structure` the program passes or takes */
	__u8 structure_unit; /* in units of so many bytes */
	__u8 structure_room; /* 1: structure_len is an address, of the room and then of the length */
	__u8 structure_any_abi; /* 1: laid out in the same way for 32-bit programs */
	__u8 message; /* struct msghdr */
	__u8 messages; /* array of struct mmsghdr, as many as the call returns */
	__u8 flow; /* enum flow_source: struct flow_facts are sent */
	__u8 stream; /* enum stream_direction; both: nobody can tell which bytes */
	__u8 stream2; /* the same of the second file */
	__u8 reserved[3]; /* 0 */
};

/* Set before the programs are loaded. */
struct probe_config {
	__u32 self_pid; /* fathom's own thread group: never recorded */
	__u32 all_tasks; /* 1: record every task */
	__u32 all_file_types; /* 1: sockets, pipes and anonymous files too */
	__u32 detail; /* enum detail */
	__u32 slots; /* slots a CPU, a power of two */
	__u32 follow; /* 1: children of recorded tasks are recorded */
	__u32 mnt_ns; /* inode of the recorder's mount namespace */
	__u32 cpus; /* processors that the machine may have */
	__u32 aio; /* 1: operations of AIO are recorded */
	__u32 content; /* enum content_mode */
	__u32 content_max; /* bytes of a call's content that are taken at most */
	__u32 content_room; /* bytes of a wide ring that content may fill */
	__u32 counters; /* 1: calls are counted, not recorded; with detail FDS by file, too */
	__u32 stacks; /* 1: user stacks of calls are recorded */
	__u32 perf_counters; /* bits of enum counter: read of each request; MAX_COUNTERS at most */
	__u32 perf_values; /* how many bits that are */
	__u32 tail; /* 1: struct tail_control says which calls get a record */
	__u32 network; /* 1: calls are recorded that have what only socket and waiting calls have */
	__u32 sockets; /* 1: calls on sockets and pipes are recorded, too */
	__u32 streams; /* 1: all calls that move bytes of sockets and pipes are recorded */
	__u32 library; /* 1: calls of functions of libraries are recorded */
	__u32 spans; /* bytes that are taken of each call on a stream socket, CONTENT_CHUNK at most */
	__u32 contexts; /* 1: the span contexts of threads are recorded */
	__u32 reserved; /* 0 */
};

/* Which calls get a record when config.tail is set. The others are counted. User space
 * changes it while the programs run. */
struct tail_control {
	__u64 slow_ns; /* calls that take so long are slow; 0: those slower than usual */
	__u32 sample_below; /* others get a record when a random number is below it */
	__u32 mode; /* enum tail_mode */
};

enum tail_mode {
	/* All calls. */
	TAIL_ALL = 0,
	/* Calls that are slow or fail, in which something happened in a layer below, and a
	 * sample of the others. */
	TAIL_SLOW = 1,
	/* None; neither have the layers below, but for requests to devices. */
	TAIL_NONE = 2,
};

enum content_mode {
	CONTENT_MODE_NONE = 0,
	/* Hashed in the kernel. */
	CONTENT_MODE_HASH = 1,
	/* Sent, and hashed in user space. */
	CONTENT_MODE_SEND = 2,
	/* Sent, and kept. */
	CONTENT_MODE_PLAIN = 3,
};

/* Page faults: set before the programs are loaded. */
struct fault_config {
	__u32 begins; /* 1: the beginning of a fault is seen */
	__u32 ends; /* 1: the end of a fault is seen */
	__u32 page_shift; /* binary logarithm of the size of a page */
	__u32 writeback; /* 1: write-back of mapped files is recorded */
};

/* Layers below the calls: set before the programs are loaded. */
struct layer_config {
	__u32 block; /* 1: requests to devices are recorded */
	__u32 sched; /* 1: waits */
	__u32 irq; /* 1: interrupts */
	__u32 counts; /* 1: what a request does in the page cache is counted */
	__u32 page_shift; /* binary logarithm of the size of a page */
	__u32 spans; /* 1: parts of file systems are recorded */
	__u32 flush_sequence_bit; /* of rq_flags: the request is part of a sequence of flushes */
	__u32 miss_completions; /* of a test: one in so many is left out, 0: none */
};

/* What a filter's rule is about. Kind k is bit 1 << k in struct filter_config. */
enum rule_kind {
	RULE_PATH = 0,
	RULE_COMM = 1,
	RULE_PID = 2,
	RULE_TID = 3,
	RULE_UID = 4,
	RULE_CGROUP = 5,
	RULE_CONTAINER = 6,
	/* Names of cgroups, at any depth. */
	RULE_UNIT = 7,
	RULE_POD = 8,
};

enum rule_form {
	/* The whole value. */
	RULE_WHOLE = 0,
	/* What the value begins with. */
	RULE_BEGINNING = 1,
};

/* Value of a rule, bits. */
enum rule_sign {
	/* What it names is recorded. */
	RULE_TAKES = 1,
	/* What it names is not recorded. */
	RULE_LEAVES = 2,
};

/* A rule of a filter, in map `rules`. The hashes are those of
 * bpf/include/path_filter.h; a number is its own hash. */
struct rule_key {
	__u32 kind; /* enum rule_kind */
	__u32 form; /* enum rule_form */
	__u64 hash; /* of the value */
};

/* The filters, set before the programs are loaded. */
struct filter_config {
	__u64 seed; /* of the hashes, random */
	__u64 factor; /* of the hashes, random and odd */
	__u64 min_dur_ns; /* shorter calls are not recorded */
	__u64 path_depths; /* bit d: a rule has a path of d components; 63: or more */
	__u64 container_lengths; /* bit n - 1: a rule has the first n digits of an id */
	__u32 given; /* kinds that have rules */
	__u32 takes; /* kinds that have rules with RULE_TAKES */
	__u32 file_types; /* bit t: st_mode >> 12 = t is recorded; 0: not filtered */
	__u32 path_types; /* the same for calls that are given a path */
	__u32 known_types; /* 1: calls whose file is not known are not recorded */
	__u32 errors_only; /* 1: calls that succeed are not recorded */
	__u32 comm_lengths; /* bit n: a rule has the first n bytes of a name */
	__u32 reserved; /* 0 */
};

enum detail {
	DETAIL_RAW = 0,
	DETAIL_FDS = 1,
	DETAIL_FULL = 2,
};

#endif
