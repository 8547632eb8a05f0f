/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * State of the kernel side of which user space makes or reads a part. Written as
 * record.h is, from which and from here fathom-model generates its Rust side.
 */
#ifndef FATHOM_STATE_H
#define FATHOM_STATE_H

enum state_limits {
	/* Files that each task remembers. */
	CACHED_FILES = 32,
	/* Kinds of struct span_record that a task can be in, a power of two. */
	SPAN_KINDS = 32,
};

enum task_flag {
	/* The command's task before it executes the command: not recorded. */
	TASK_WAITS_FOR_EXEC = 1,
	/* Its task record has been sent. Without it, its next call sends one. */
	TASK_ANNOUNCED = 2,
	/* The filters of tasks do not let it pass: not recorded. */
	TASK_LEFT = 4,
};

/* Positions in a CPU's slot ring; on cache lines of their own, because one
 * side writes each. They count up without end. */
struct slot_cursor {
	__u64 head; /* next slot to write */
	__u32 busy; /* claim_number() */
	__u32 pad0; /* 0 */
	__u64 pad1[14]; /* 0 */
	__u64 tail; /* next slot to read; written by user space */
	__u64 pad2[15]; /* 0 */
};

/* A file as one task last used it. Handle and path are good for as long as
 * every pointer and number is still the same. One cache line. */
struct cached_file {
	__u64 inode; /* struct inode */
	__u64 dentry; /* struct dentry, of the name */
	__u64 mnt; /* struct vfsmount */
	__u64 ino; /* inode number */
	__u32 generation; /* inode generation */
	__u32 epoch; /* 0: the file is still to be announced */
	__u32 handle; /* 0: not announced, as nothing recorded used it */
	__u32 verdict; /* enum verdict of the filter of paths */
	__u32 removed; /* whether the name was removed */
	__u32 mode; /* st_mode, of which the type holds */
	__u32 type_passes; /* 1: calls on a file of its type are recorded; 0: not known */
	__u32 reserved; /* 0 */
};

/* The page fault that a task is in, see faults.bpf.h. */
struct fault_state {
	__u64 began_ns; /* 0: in none */
	__u64 address; /* that was touched */
	__u64 around_first; /* first page that was mapped along */
	__u64 around_last; /* last of them */
	__u64 noted_inode; /* inode last noted for write-back */
	__u32 error_code; /* of the processor */
	__u32 around; /* 1: the range above is set */
	__u64 mm; /* of the mapping last found, good while none changed; 0: none */
	__u64 vma; /* that mapping */
	__u64 vma_start; /* its first address */
	__u64 vma_end; /* the address behind it */
	__u32 mm_sequence; /* moves when a mapping of the process changes */
	__u32 reserved; /* 0 */
	__u64 pivots[15]; /* MAPLE_PIVOTS, of the node that is being looked at */
};

/* What the layers below know of the request that a task is in. */
struct layer_state {
	__u64 out_ns; /* when it left the CPU, 0: it did not */
	__u64 out_request; /* request_ns as in struct wait_record */
	__u64 wake_ns; /* when it was woken, 0: it was not */
	__u32 out_flags; /* enum wait_flag */
	__u32 out_place; /* enum wait_place */
	__u64 lock; /* of the kernel, that the task waits for; 0: none */
	__u32 waker; /* as in struct wait_record */
	__u8 waker_comm[16]; /* its name */
	__u32 lookups; /* batches in which pages were looked up: cache_state.h */
	struct cache_facts cache; /* of the request; pages is set when it ends */
	__u64 first; /* page with which the lookups began */
	__u64 last; /* last page that was looked up */
	__u64 mapping; /* the struct address_space that has them */
	__u64 added_first; /* first page that was added, but not yet counted */
	__u64 added_end; /* page behind those */
	__u64 added_mapping; /* the struct address_space that has them */
	__u64 ahead_first; /* pages that were added ahead of the lookups, the latest of them */
	__u64 ahead_end; /* page behind those */
	__u64 dirty_inode; /* what was last noted as made dirty */
	__u64 dirty_index; /* its page, as in struct dirty_key */
	__u64 dirty_ns; /* by which request */
	__u64 op_ns; /* operation of io_uring that is being submitted, 0: none */
	__u64 iocb; /* direct I/O that is being submitted, 0: none */
	__u64 span_ns[32]; /* when a part of a file system began, 0: it did not; SPAN_KINDS */
};

/* A request to a device on its way (block.bpf.h). What its record needs is noted as it
 * goes to the driver: the kernel may leave out the program that would see it complete. */
struct request_state {
	__u64 began_ns; /* start_time_ns of the kernel's request, 0 before that is set */
	__u64 started_at_ns; /* as in struct block_record, as are the next two */
	__u64 inserted_at_ns;
	__u64 issued_at_ns;
	__u64 sector; /* of 512 bytes */
	__u64 done; /* bytes that were completed so far */
	__u64 bytes; /* of the whole request */
	__u64 bio_at; /* its struct bio, if it has one only; 0: none, or several */
	struct bio_record bio; /* of that one; queued_at_ns is 0 when it is not known */
	__u32 depth; /* of the device's queue when it was issued */
	__u32 requeues; /* times that it was taken back */
	__u32 in_device; /* 1: it was issued, and neither completed nor taken back */
	__u32 dev; /* the kernel's encoding */
	__u16 op; /* REQ_OP_ of the kernel */
	__u16 flags; /* enum block_flag */
	__u32 reserved; /* 0 */
	__u8 disk[32]; /* name of the device, DISK_NAME */
};

/* Where a task is in counting performance counters, see perf_counters.h. */
enum perf_stage {
	PERF_NOT = 0,
	/* In a request, on a CPU. */
	PERF_ON = 1,
	/* In a request, off the CPU. */
	PERF_OFF = 2,
	/* The request has ended; its record is still to be made. */
	PERF_ENDED = 3,
};

/* What is known of the struct that a call may overwrite, at its return. */
enum early_stage {
	/* It has none, or it could not be read. */
	EARLY_NONE = 0,
	/* A null pointer was passed. */
	EARLY_NULL = 1,
	EARLY_READ = 2,
};

/* Counters of perf over the request that a task is in. */
struct perf_state {
	__u32 stage; /* enum perf_stage */
	__u32 unknown; /* bit i: counter i could not be told */
	__u64 base[5]; /* MAX_COUNTERS: when the task came to the CPU it is on */
	__u64 lag[5]; /* by how much longer each was wanted than counted, then */
	__u64 sum[5]; /* what each grew by until then */
};

/* A direction of the byte stream of a socket or a pipe. */
struct stream_key {
	__u64 inode; /* its address, and enum stream_direction in the lowest bits */
	__u64 ino; /* inode number */
};

enum stream_stage {
	/* It is no stream, or older than the recording. */
	STREAM_NONE = 0,
	/* The call began while no other was in progress. */
	STREAM_ALONE = 1,
	STREAM_SHARED = 2,
};

/* A stream that a call uses. */
struct stream_use {
	struct stream_key key; /* of the stream */
	__s64 offset; /* bytes before those of the call, NO_OFFSET: not known */
	__u32 stage; /* enum stream_stage */
	__u32 entries; /* calls that had begun */
};

/* The span context of the latest call of a task. */
struct context_seen {
	__u64 record; /* address of the program's record, 0: none */
	__u64 trace[2]; /* as in struct context_record */
	__u64 span; /* the same */
	__u8 kind; /* enum context_kind */
	__u8 changed; /* 1: still to be sent */
	__u16 attributes_bytes; /* as the program says it */
	__u32 reserved; /* 0 */
};

/* The call of a TLS library that a thread is in, see tls.bpf.h. */
struct tls_call {
	__u64 began_ns; /* 0: in none */
	__u64 sp; /* where its return address is */
	__u64 session; /* the library's object for the connection */
	__u64 buffer;
	__u64 length_at; /* where it stores how many bytes it moved */
	__u32 function; /* enum tls_function */
	__u32 file; /* handle of the stream socket that it used, 0: of none so far */
};

/* What hangs on every recorded task. The call members are valid between entry
 * and exit of a call that is recorded, when enter_ns is not 0. */
struct task_state {
	__u64 enter_ns; /* entry of the call; 0: in none that is recorded */
	__u64 file_ptr; /* struct file behind the descriptor */
	__s64 entry_pos; /* lowest offset of its I/O, as seen at entry; NO_OFFSET: unknown */
	__s64 entry_pos2; /* the same of the second file, fd2 */
	__u32 number; /* system call number */
	__u32 file; /* handle */
	__u32 file2; /* handle of the second file */
	__u32 call_flags; /* enum stash_flag */
	__u32 flags; /* enum task_flag */
	__u32 calls; /* that were recorded of the task */
	__u64 timed_ns; /* what the entry took, if this call is timed */
	__u64 aio_ns; /* what aio_enter() took at the entry */
	__u64 aio_context; /* struct kioctx of the call, see aio.bpf.h */
	__u32 aio_taken; /* iocbs of the call that were taken in at its entry */
	__u32 noted; /* 1: something happened in a layer below the call */
	__u64 stack_ns; /* beginning of the call whose stack is still to be taken, 0: none */
	struct fault_state fault; /* of page faults */
	struct layer_state layers; /* of the layers below */
	struct perf_state perf; /* of counters of perf */
	struct cached_file files[32]; /* CACHED_FILES of them */
	struct call_record call; /* of the call that returns, as it is made */
	__u64 args[8]; /* of that call, by their index */
	__u64 early[4]; /* struct that was read at the entry; EARLY_BYTES */
	__u32 early_stage; /* enum early_stage */
	__u32 room; /* bytes that the program has for the struct that the call fills in */
	struct stream_use streams[2]; /* of the descriptor, and of the second one */
	struct context_seen context; /* --otel-context */
	struct tls_call tls;
};

#endif
