/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Records of the layers below a call, and of page faults. The Rust side is generated from
 * this file as from record.h, and the same syntax applies.
 */
#ifndef FATHOM_LAYER_RECORDS_H
#define FATHOM_LAYER_RECORDS_H

#include "record.h"

enum fault_flag {
	FAULT_WRITE = 1,
	FAULT_EXEC = 2,
	/* The page had to be read, or waited for. */
	FAULT_MAJOR = 4,
	/* It ended in SIGBUS: beyond the end of the file, or reading failed. */
	FAULT_FAILED = 8,
	/* The mapping is shared. */
	FAULT_SHARED = 16,
	/* The kernel touched the page, inside of a call. */
	FAULT_KERNEL = 32,
	/* The page was mapped, but not for this access. */
	FAULT_PRESENT = 64,
	/* The beginning was not seen: dur_ns and the access mean nothing. */
	FAULT_NO_BEGIN = 128,
	/* The end was not seen: dur_ns and FAULT_MAJOR mean nothing. */
	FAULT_NO_END = 256,
};

/* A page fault on a mapped file. Members that struct call_record has too mean
 * the same. */
struct fault_record {
	__u8 kind; /* RECORD_FAULT */
	__u8 reserved; /* 0 */
	__u16 flags; /* enum fault_flag */
	__u32 around_bytes; /* of the range that was mapped along, 0: none */
	__u64 ts_ns; /* when the fault was taken */
	__u64 dur_ns; /* until the kernel had dealt with it */
	__u32 pid; /* thread group */
	__u32 tid; /* thread */
	__u64 address; /* that was touched */
	__s64 offset; /* the byte in the file that it maps */
	__s32 around_from; /* where the range that was mapped along begins, bytes from offset */
	__u32 file; /* handle */
	__u32 added; /* what it did in the page cache: as in struct cache_facts */
	__u16 dirtied; /* the same */
	__u16 handles; /* the same */
};

enum writeback_flag {
	/* The pages lie one behind the other in the file. */
	WRITEBACK_CONTIGUOUS = 1,
	/* Submitted in the call `syscall` of a recorded task. */
	WRITEBACK_IN_CALL = 2,
};

/* Dirty pages of a file on their way to the device: one request of the file
 * system to the block layer. */
struct writeback_record {
	__u8 kind; /* RECORD_WRITEBACK */
	__u8 flags; /* enum writeback_flag */
	__u16 syscall; /* row in bpf/syscalls.def */
	__u32 file; /* handle */
	__u64 ts_ns; /* when it was submitted */
	__u32 pid; /* thread group that submitted it */
	__u32 tid; /* thread */
	__s64 offset; /* first byte in the file */
	__u64 bytes; /* of all its pages */
	__u8 comm[16]; /* name of the thread, padded with NUL */
};

/* Records of the layers below a call name the request in whose course they were
 * made by its thread and the time at which it began: what the record of the call,
 * operation or fault has as tid and ts_ns. 0: by no request that is recorded. */

/* What made the kernel submit a bio. */
enum bio_origin {
	/* Nothing of the below could be told. */
	BIO_OTHER = 0,
	/* The task's own I/O: direct, or metadata that it needs. */
	BIO_CALL = 1,
	/* Pages that are read into the page cache. */
	BIO_CACHE_READ = 2,
	/* The same, ahead of what was asked for. */
	BIO_READAHEAD = 3,
	/* Dirty pages of the page cache. */
	BIO_WRITEBACK = 4,
	/* The journal of the file system. */
	BIO_JOURNAL = 5,
};

/* A part of a request to a device, as a file system submitted it. */
struct bio_record {
	__u64 queued_at_ns; /* when it was submitted, 0 when that was not seen */
	__u64 cause_ns; /* request that caused it: who dirtied the pages that it writes */
	__u64 submit_ns; /* request in whose course it was submitted */
	__u64 sector; /* of 512 bytes, on the whole device */
	__s64 offset; /* of its first byte in the file, NO_OFFSET when not known */
	__u32 bytes; /* that it moves */
	__u32 cause_tid; /* thread of cause_ns */
	__u32 cause_pid; /* process of cause_ns */
	__u32 submit_tid; /* thread that submitted it */
	__u32 submit_pid; /* its process */
	__u32 file; /* handle, 0 when the file is not known */
	__u32 origin; /* enum bio_origin */
	__u32 reserved; /* 0 */
	__u8 comm[16]; /* name of the thread that submitted it */
};

/* REQ_ flags of the kernel, whose values there depend on its version. */
enum block_flag {
	BLOCK_SYNC = 1,
	BLOCK_META = 2,
	BLOCK_PRIO = 4,
	BLOCK_FUA = 8,
	BLOCK_PREFLUSH = 16,
	BLOCK_RAHEAD = 32,
	BLOCK_BACKGROUND = 64,
	BLOCK_NOWAIT = 128,
	BLOCK_IDLE = 256,
	/* None of the kernel's: how the request ended was not seen. completed_at_ns is when that
	 * was noticed, bytes are those of the whole request, bios the first at most. */
	BLOCK_UNSEEN = 32768,
};

/* A request to a device, made when it was completed. Its bios follow. */
struct block_record {
	__u8 kind; /* RECORD_BLOCK */
	__u8 error; /* blk_status_t */
	__u16 bios; /* that follow */
	__u32 dev; /* the kernel's encoding */
	__u64 started_at_ns; /* when the block layer had a request for it, 0: not seen */
	__u64 inserted_at_ns; /* into the scheduler's queue, 0: not */
	__u64 issued_at_ns; /* to the device, 0: not seen */
	__u64 completed_at_ns; /* by the device */
	__u64 sector; /* of 512 bytes */
	__u64 bytes; /* that were moved */
	__u16 op; /* REQ_OP_ of the kernel */
	__u16 flags; /* enum block_flag */
	__u32 queue_depth; /* requests that the device had, this one included */
	__u32 bios_left_out; /* bios beyond MAX_BIOS */
	__u32 requeues; /* times that it was taken back from the device */
	__u8 disk[32]; /* name of the device, padded with NUL */
};

enum wait_flag {
	/* It waited for I/O, as the kernel accounts it. */
	WAIT_IO = 1,
	/* It would have gone on, but another took the CPU. */
	WAIT_PREEMPTED = 2,
	/* wake_ns and the waker are set. */
	WAIT_WOKEN = 4,
	/* An interrupt woke it: waker is none, comm tells which. */
	WAIT_BY_INTERRUPT = 8,
	/* That it was back was not seen: dur_ns is until that was noticed. */
	WAIT_UNSEEN = 16,
	/* It waited for a lock of the kernel that another task held. */
	WAIT_LOCK = 32,
	/* A signal woke it. */
	WAIT_SIGNAL = 64,
	/* It was still off the CPU when the recording ended: dur_ns is until then. */
	WAIT_PENDING = 128,
};

/* What a thread was doing as it left the CPU, three numbers in one: the call that it was in,
 * its state, and the type of the file of that call. */
enum wait_place {
	/* Row in bpf/syscalls.def. */
	WAIT_CALL_MASK = 511,
	/* From here on calls that are never recorded: crates/model/src/syscalls/unrecorded.rs. */
	WAIT_UNRECORDED = 400,
	/* A call that is not there. */
	WAIT_OTHER_CALL = 510,
	/* None, as in a page fault. */
	WAIT_NO_CALL = 511,
	/* enum wait_state, three bits. */
	WAIT_STATE_SHIFT = 9,
	/* Type of the file, four bits: S_IFMT of its mode, shifted. */
	WAIT_TYPE_SHIFT = 12,
	/* The type when the call has no file, and no request: request_ns is the call's first
	 * argument, which is the address of a futex. */
	WAIT_TYPE_ADDRESS = 15,
};

enum wait_state {
	/* It would have gone on. */
	WAIT_RUNNABLE = 0,
	WAIT_INTERRUPTIBLE = 1,
	WAIT_UNINTERRUPTIBLE = 2,
	/* By a signal or a debugger. */
	WAIT_STOPPED = 3,
	WAIT_OTHER_STATE = 4,
};

/* A thread was off the CPU. */
struct wait_record {
	__u8 kind; /* RECORD_WAIT */
	__u8 flags; /* enum wait_flag */
	__u16 place; /* enum wait_place */
	__u32 waker; /* thread that woke it */
	__u64 ts_ns; /* when it left the CPU */
	__u64 dur_ns; /* until it was back */
	__u32 pid; /* process */
	__u32 tid; /* thread */
	__u64 request_ns; /* of the request; 0: outside requests */
	__u64 wake_ns; /* when it was woken */
	__u8 comm[16]; /* name of the waker; of a softirq of the network: who sent, in 32 bits */
};

enum in_flight_flag {
	/* An operation of io_uring or AIO. */
	IN_FLIGHT_OPERATION = 1,
	/* Of a file that has positions. */
	IN_FLIGHT_SEEKABLE = 2,
};

/* A call that has not returned, or an operation that has not completed: what the iterators
 * `in_flight` and `operations_in_flight` write, one for each. In no ring. */
struct in_flight_record {
	__u64 ts_ns; /* entry; submission */
	__u32 pid; /* thread group */
	__u32 tid; /* thread */
	__u32 syscall; /* row in bpf/syscalls.def or bpf/operations.def */
	__u32 flags; /* enum in_flight_flag */
	__s32 fd; /* of an operation; -1: none, or the file is registered with the ring */
	__u32 reserved; /* 0 */
};

enum irq_type {
	IRQ_HARD = 0,
	IRQ_SOFT = 1,
	IRQ_TIMER = 2,
	IRQ_CALL = 3,
};

/* An interrupt on the CPU on which a request was being worked on. */
struct irq_record {
	__u8 kind; /* RECORD_IRQ */
	__u8 source; /* enum irq_type */
	__u16 number; /* of the interrupt, or of the softirq */
	__u32 reserved; /* 0 */
	__u64 ts_ns; /* when its handler began */
	__u64 dur_ns; /* until it ended */
	__u32 pid; /* process of the thread that was interrupted */
	__u32 tid; /* that thread */
	__u64 request_ns; /* of the request */
	__u64 reserved2; /* 0 */
	__u8 name[16]; /* of the device, for IRQ_HARD */
};

enum span_kind {
	/* fsync in ext4. */
	SPAN_EXT4_SYNC = 1,
	/* Direct I/O of iomap. */
	SPAN_DIRECT = 2,
	/* Functions, where programs can hook them: do_filp_open. */
	SPAN_OPEN = 3,
	/* vfs_read. */
	SPAN_VFS_READ = 4,
	/* vfs_write. */
	SPAN_VFS_WRITE = 5,
	/* vfs_fsync_range. */
	SPAN_VFS_FSYNC = 6,
	/* ext4_file_read_iter. */
	SPAN_EXT4_READ = 7,
	/* ext4_file_write_iter. */
	SPAN_EXT4_WRITE = 8,
	/* xfs_file_read_iter. */
	SPAN_XFS_READ = 9,
	/* xfs_file_write_iter. */
	SPAN_XFS_WRITE = 10,
	/* xfs_file_fsync. */
	SPAN_XFS_FSYNC = 11,
	/* btrfs_file_read_iter. */
	SPAN_BTRFS_READ = 12,
	/* btrfs_file_write_iter. */
	SPAN_BTRFS_WRITE = 13,
	/* btrfs_sync_file. */
	SPAN_BTRFS_FSYNC = 14,
	/* filemap_read: lookups, waits for pages, and the copy to the program. */
	SPAN_CACHE_READ = 15,
	/* generic_perform_write: pages that are made dirty, and the copy to them. */
	SPAN_CACHE_WRITE = 16,
	/* iomap_file_buffered_write: the same in file systems that use iomap. */
	SPAN_IOMAP_WRITE = 17,
	/* filemap_fault. */
	SPAN_CACHE_FAULT = 18,
	/* submit_bio. */
	SPAN_SUBMIT = 19,
	/* do_file_open, which is do_filp_open in newer kernels. */
	SPAN_FILE_OPEN = 20,
	/* A request to a FUSE server. */
	SPAN_FUSE = 21,
	/* A request to an NFS server, and one for which no thread need wait. */
	SPAN_NFS = 22,
	SPAN_NFS_ASYNC = 23,
	/* The first function that --function names; the others have the kinds behind it. */
	SPAN_FUNCTION = 24,
};

/* The time that a request spent in a part of a file system. */
struct span_record {
	__u8 kind; /* RECORD_SPAN */
	__u8 span; /* enum span_kind */
	__u16 operation; /* of SPAN_FUSE: its opcode */
	__u32 file; /* handle */
	__u64 ts_ns; /* when it began */
	__u64 dur_ns; /* until it ended */
	__u32 pid; /* process */
	__u32 tid; /* thread */
	__u64 request_ns; /* of the request */
	__u64 sent_ns; /* of SPAN_NFS: when it was sent */
	__u8 name[16]; /* of SPAN_NFS: the operation, cut or padded with NUL */
};

/* A function that --function names: written by user space before any of its visits. Names of its
 * layer and of the function follow. */
struct function_name_record {
	__u8 kind; /* RECORD_FUNCTION_NAME */
	__u8 span; /* SPAN_FUNCTION and above */
	__u16 layer_len; /* bytes */
	__u16 name_len; /* bytes */
	__u16 reserved; /* 0 */
	__u64 ts_ns; /* when the recording started */
};

#endif
