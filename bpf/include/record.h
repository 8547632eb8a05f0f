/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What crosses from the kernel side to user space: the only source of these
 * layouts. The Rust side is generated from this file when fathom-model is
 * built (crates/model/build.rs), which is why the syntax is kept plain: fixed
 * width members, one a line, each with a comment that becomes its
 * documentation; constants as enums with explicit values.
 *
 * Two ways out of the kernel, both one per CPU:
 *   - the slot ring: fixed slots of SLOT_BYTES in memory that both sides map,
 *     for calls that fit (most of them);
 *   - the wide ring: a BPF ring buffer, for everything of variable length.
 * Times are CLOCK_MONOTONIC nanoseconds.
 */
#ifndef FATHOM_RECORD_H
#define FATHOM_RECORD_H

enum limits {
	SLOT_BYTES = 64,
	/* Calls in bpf/syscalls.def and operations in bpf/operations.def together,
	 * rounded up. */
	MAX_SYSCALLS = 512,
	/* In the cpu of a key of map `counted`: to which of two sides it belongs. Calls are counted on
	 * one while user space takes what is on the other. */
	COUNTED_SIDE = 1 << 30,
	/* System call numbers of any architecture that we serve lie below. */
	MAX_NUMBERS = 512,
	/* Operations of io_uring have their number as their place among the
	 * descriptors of operations; those of AIO begin at AIO_OPERATIONS. */
	MAX_OPERATIONS = 128,
	AIO_OPERATIONS = 112,
	MAX_PATH = 4096,
	/* Longest component of a path, NAME_MAX. */
	MAX_NAME = 255,
	MAX_CMDLINE = 4096,
	COMM_BYTES = 16,
	/* Buckets of a latency histogram: bucket b counts durations from
	 * 2^b ns up to, not including, 2^(b+1) ns; the last takes the rest. */
	HIST_BUCKETS = 40,
	/* Extra arguments of a wide call. */
	MAX_EXTRA = 3,
	/* Content of calls is read, hashed and sent in pieces of so many bytes, a
	 * multiple of the 32 that XXH64 takes at a time. */
	CONTENT_CHUNK = 16384,
	/* Bytes of content of a call that can be taken at most: the processor
	 * serves nobody else meanwhile. */
	MAX_CONTENT = 4194304,
	/* Of a struct that an argument points to, at most: struct statx up to the
	 * device. */
	STRUCT_BYTES = 144,
	/* Of a struct that is read at the entry of a call, at most: struct itimerspec. */
	EARLY_BYTES = 32,
	/* Of string3, which is a text and no path. */
	MAX_TEXT = 256,
	/* struct call_record: size has the number of segments above this bit. */
	SEGMENTS_SHIFT = 48,
	/* struct call_desc: the size has no upper half, and is signed. */
	SIGNED_ARG = 254,
	/* struct call_desc: the address that the call returns. */
	RESULT_ARG = 254,
	/* One call in so many is timed, a power of two. */
	COST_SAMPLE = 256,
	/* struct call_desc: the call has no such argument. */
	NO_ARG = 255,
	/* Places of the arguments that plain calls have (read, pread64), if they have them. */
	PLAIN_FD = 0,
	PLAIN_SIZE = 2,
	PLAIN_OFFSET = 3,
	/* What is no call is lost under these places behind the calls. */
	LOST_FAULT = 511,
	LOST_WRITEBACK = 510,
	LOST_BLOCK = 509,
	LOST_WAIT = 508,
	LOST_IRQ = 507,
	LOST_SPAN = 505,
	LOST_STACK = 504,
	LOST_COUNTERS = 503,
	LOST_LIBRARY_CALL = 502,
	LOST_USDT = 501,
	LOST_TLS = 500,
	/* Parts of a request to a device that its record can list. */
	MAX_BIOS = 160,
	/* Bytes of a stack that are sent: what the wrappers of the C library and the
	 * function that calls them take. */
	STACK_BYTES = 1024,
	DISK_NAME = 32,
	/* Counters of perf that are read of each request at most: what a slot holds. */
	MAX_COUNTERS = 5,
	/* Functions of libraries whose calls are recorded at most, a power of two. */
	MAX_FUNCTIONS = 1024,
	/* Calls of such functions that a thread can be in at once, a power of two. */
	MAX_LIBRARY_DEPTH = 8,
	/* Functions of the kernel that --function names at most: SPAN_FUNCTION and the kinds behind
	 * it. */
	MAX_KERNEL_FUNCTIONS = 8,
	/* Arguments of a function of a library, as registers pass them. */
	LIBRARY_ARGS = 6,
	/* Places of static probes that are recorded at most, a power of two. */
	MAX_USDT_PLACES = 1024,
	/* Bytes of the text that a static probe passes, with NUL; a power of two. */
	MAX_USDT_TEXT = 1024,
	/* An argument of a static probe is 1 << 3 bytes long at most. */
	USDT_ARGUMENT_BITS = 3,
	/* Bytes of the attributes of a span context that are sent at most: its record has 640 by
	 * the recommendation, and 28 before them. */
	MAX_CONTEXT_ATTRIBUTES = 612,
};

/* First byte of every record. In the slot ring its highest bit, SLOT_LAP, tells
 * whether a slot was written in this turn of the ring or in the one before: it is
 * set in the first turn, clear in the second, and so on. */
enum record_kind {
	RECORD_CALL = 1,
	RECORD_WIDE_CALL = 2,
	RECORD_FILE = 3,
	RECORD_TASK = 4,
	RECORD_MOUNT = 5,
	RECORD_OPERATION = 6,
	RECORD_FAULT = 7,
	RECORD_WRITEBACK = 8,
	RECORD_DATA_CALL = 9,
	RECORD_CONTENT_PART = 10,
	RECORD_BLOCK = 11,
	RECORD_WAIT = 12,
	RECORD_IRQ = 13,
	RECORD_CACHED_CALL = 14,
	RECORD_SPAN = 15,
	RECORD_STACK = 16,
	RECORD_FRAME = 17,
	RECORD_COUNTERS = 18,
	RECORD_LIBRARY_CALL = 19,
	RECORD_FUNCTION = 20,
	RECORD_CONTAINER = 21,
	RECORD_FUNCTION_NAME = 22,
	RECORD_USDT = 23,
	RECORD_USDT_PLACE = 24,
	RECORD_CONTEXT = 25,
	RECORD_CONTEXT_PROCESS = 26,
	RECORD_LIBRARY_COUNT = 27,
	SLOT_LAP = 128,
};

enum call_flag {
	/* The call had not returned: ret means nothing, dur_ns is the time
	 * that it has taken so far. */
	CALL_PENDING = 1,
	/* string1 / string2 could not be read or did not fit. */
	CALL_STRING1_PARTIAL = 2,
	CALL_STRING2_PARTIAL = 4,
	/* aux (of lseek: size) names the open file description whose position was
	 * used, moved or given up, and which several threads or processes may
	 * share. */
	CALL_SHARED_POSITION = 8,
	/* The position moved between entry and exit by something else than
	 * this call: extra[0] is the lowest offset possible, as found at entry,
	 * offset the one derived at exit; the I/O took place at one of them or in
	 * between. NO_OFFSET: nothing is known. */
	CALL_POSITION_RACED = 16,
	/* stat_dev and stat_ino are valid. */
	CALL_HAS_STAT = 32,
	/* Of a call that moved data, with CALL_POSITION_RACED: it appended, and the
	 * lowest offset is the size of the file at entry. Only calls by path have
	 * the flag above. */
	CALL_APPENDS = 32,
	/* extra[] of openat2 holds flags, mode, resolve: the kernel has read them. */
	CALL_HAS_HOW = 64,
	/* Of a call that moved data: there was no room for its content. Only
	 * openat2 has the flag above. */
	CALL_NO_CONTENT = 64,
	/* Strings were not asked for; goes with the PARTIAL flags. */
	CALL_NO_STRINGS = 128,
};

/* What the arguments of a wide call are. */
enum arg_flag {
	/* A null pointer was passed for string1, string2, string3. */
	ARG_STRING1_NULL = 1,
	ARG_STRING2_NULL = 2,
	ARG_STRING3_NULL = 4,
	/* string3 could not be read or did not fit. */
	ARG_STRING3_PARTIAL = 8,
	/* A null pointer was passed for the position in the file, in the second
	 * file: the descriptor's own is meant. */
	ARG_OFFSET_NULL = 16,
	ARG_OFFSET2_NULL = 32,
	/* A null pointer was passed for the struct. */
	ARG_STRUCT_NULL = 64,
	/* extra[1] is the number of segments, which call.size does not have. */
	ARG_SEGMENTS = 128,
	/* Of an operation: size was passed, also when it looks like NO_SIZE. */
	ARG_SIZE = 256,
	/* string3 is the value of an extended attribute, or its beginning. */
	ARG_VALUE = 512,
	/* A null pointer was passed for the struct that is read at the entry. */
	ARG_EARLY_NULL = 1024,
	/* The struct begins with what was read at the entry. */
	ARG_EARLY = 2048,
	/* The struct ends with a struct flow_facts. */
	ARG_FLOW = 4096,
	/* offset2 is a position in the byte stream of a socket or a pipe. */
	ARG_STREAM2 = 8192,
	/* The call opened a file that it made itself. */
	ARG_CREATED = 16384,
};

/* One completed call. offset is NO_OFFSET and size is NO_SIZE when the call
 * has none or it could not be read; a size that the program passes can be that
 * number, too. Of calls with segments (iov) size has their number from bit
 * SEGMENTS_SHIFT on, unless ARG_SEGMENTS is set. file is a handle from struct
 * file_record, 0 when the call has no file. */
struct call_record {
	__u8 kind; /* enum record_kind */
	__u8 flags; /* enum call_flag */
	__u16 syscall; /* row in bpf/syscalls.def, from 0, or in operations.def after them */
	__s32 fd; /* descriptor argument, -1 when there is none */
	__u64 ts_ns; /* entry */
	__u64 dur_ns; /* exit less entry */
	__u32 pid; /* thread group */
	__u32 tid; /* thread */
	__s64 ret; /* return value */
	__u32 file; /* handle of the file behind fd, or of the one opened */
	__u32 aux; /* first 32-bit argument without a place of its own */
	__s64 offset; /* where the I/O took place */
	__u64 size; /* bytes asked for */
};

/* What a request did in the page cache; all 0: nothing. */
struct cache_facts {
	__u32 pages; /* of the range that was looked up, 0: none was */
	__u32 missed; /* of which were not there and had to be added */
	__u32 ahead; /* pages that were added beyond that */
	__u32 added; /* pages that were added without a lookup, as by writes */
	__u32 dirtied; /* folios that became dirty */
	__u32 handles; /* changes to metadata that joined a transaction of jbd2 */
};

/* A call that did something in the page cache, as far as its numbers fit a slot; in the
 * slot ring only. Members that struct call_record and struct cache_facts have too mean the
 * same. */
struct cached_call_record {
	__u8 kind; /* RECORD_CACHED_CALL */
	__u8 flags; /* enum call_flag */
	__u16 syscall; /* row in bpf/syscalls.def */
	__s16 fd; /* descriptor argument */
	__u16 segments; /* what call_record.size has from bit SEGMENTS_SHIFT on */
	__u64 ts_ns; /* entry */
	__u32 dur_ns; /* exit less entry */
	__s32 ret; /* return value */
	__u32 pid; /* thread group */
	__u32 tid; /* thread */
	__u32 file; /* handle */
	__u32 aux; /* first 32-bit argument without a place of its own */
	__s64 offset; /* where the I/O took place */
	__u32 size; /* the rest of call_record.size, NO_SIZE32 for NO_SIZE */
	__u16 pages; /* looked up */
	__u16 missed; /* of which had to be added */
	__u16 ahead; /* pages that were added beyond that */
	__u16 added; /* pages that were added without a lookup */
	__u16 dirtied; /* folios that became dirty */
	__u16 handles; /* changes to metadata */
};

/* A call with strings, a second file or more arguments. string1, string2 and
 * string3 follow, without terminators, then the struct that an argument points to
 * (struct call_desc: lock, structure), or its beginning. The directory of a path
 * that begins with '/' is the root directory of the task, 0 when that is the one
 * of its mount namespace. */
struct wide_call_record {
	struct call_record call; /* kind is RECORD_WIDE_CALL */
	__u32 file2; /* handle of the file behind fd2 */
	__s32 fd2; /* second descriptor, -1 when there is none */
	__u32 dir1; /* handle of the directory that string1 starts from */
	__u32 dir2; /* handle of the directory that string2 starts from */
	__s32 dirfd1; /* dirfd as passed */
	__s32 dirfd2; /* dirfd2 as passed */
	__s64 offset2; /* where the I/O on file2 took place */
	__u64 extra[3]; /* further arguments, in order; of messages [2]: bytes moved */
	__u64 stat_dev; /* device of the path, as stat reports it */
	__u64 stat_ino; /* inode of the path */
	__u16 string1_len; /* bytes */
	__u16 string2_len; /* bytes */
	__u32 op_flags; /* enum operation_flag; of a call OP_STARTED_BEFORE_TRACE only */
	__u64 user_data; /* of an operation */
	__u32 root; /* handle of the directory above which no path leads, 0: the namespace's */
	__u32 arg_flags; /* enum arg_flag */
	__u16 string3_len; /* bytes */
	__u16 struct_len; /* bytes */
	__u32 reserved; /* 0 */
	__u32 at1; /* handle of what dirfd1 stands for, absolute paths too; 0 without dirfd1 */
	__u32 at2; /* the same of dirfd2 */
	struct cache_facts cache; /* of a call */
};

/* What the kernel knows of a socket or a pipe, as a call on it returns. */
struct flow_facts {
	__u16 family; /* AF_, 0 of a pipe */
	__u16 sock_type; /* SOCK_ */
	__u16 protocol; /* IPPROTO_ */
	__u16 local_port; /* 0: none */
	__u16 remote_port; /* 0: not connected */
	__u16 reserved; /* 0 */
	__u32 net_ns; /* inode of its network namespace */
	__u8 local[16]; /* address; of IPv4 the first 4 bytes */
	__u8 remote[16]; /* address of the other end */
	__u64 ino; /* inode of the socket */
	__u64 peer_ino; /* of a Unix socket: inode of the other end, 0: not known */
	__u32 handle; /* of its file */
	__u32 peer; /* handle of the other end's file, 0: not known */
	__u32 retransmits; /* of TCP: segments that were sent again */
	__u32 tcp; /* 1: retransmits is known */
};

enum flow_source {
	/* struct call_desc: the descriptor that the call returns, a new stream. */
	FLOW_RESULT = 1,
	/* The descriptor that the call works on. */
	FLOW_FD = 2,
	/* Two descriptors in memory, the ends of a new stream. */
	FLOW_PAIR = 3,
};

/* Which way bytes go between a call and its descriptor, bits. */
enum stream_direction {
	STREAM_IN = 1,
	STREAM_OUT = 2,
};

/* What an operation of io_uring or AIO has beyond a call. The first seven are
 * the kernel's IOSQE_ flags. */
enum operation_flag {
	/* The descriptor is an index into the ring's registered files. */
	OP_FIXED_FILE = 1,
	OP_DRAIN = 2,
	OP_LINK = 4,
	OP_HARDLINK = 8,
	OP_ASYNC = 16,
	OP_BUFFER_SELECT = 32,
	OP_CQE_SKIP = 64,
	/* Submitted by the kernel's thread of the ring (SQPOLL). */
	OP_SQPOLL = 128,
	/* Carried out by a worker thread (io-wq). */
	OP_WORKER = 256,
	/* Another completion follows: multishot. */
	OP_MORE = 512,
	/* The end is when the completion was found in the ring of completions:
	 * the operation itself ended before. */
	OP_END_APPROXIMATE = 1024,
	/* It ended, but when and how was not seen; goes with CALL_PENDING. */
	OP_COMPLETION_UNSEEN = 2048,
	/* The descriptor that it opened is one of the ring's registered files. */
	OP_DIRECT = 4096,
	/* Of a call, whose record is wide then: it began before the recording,
	 * ts_ns is when that found it waiting. */
	OP_STARTED_BEFORE_TRACE = 8192,
};

enum operation_size {
	/* The operation has no size, or one that could not be read. */
	NO_SIZE32 = 4294967295,
};

/* One completed operation that fits a slot; in the slot ring only. Members
 * that struct call_record has too mean the same. */
struct operation_record {
	__u8 kind; /* RECORD_OPERATION */
	__u8 flags; /* enum call_flag */
	__u16 syscall; /* row in bpf/operations.def, after those in bpf/syscalls.def */
	__s32 fd; /* descriptor, or index with OP_FIXED_FILE; -1 when there is none */
	__u64 ts_ns; /* submission */
	__u64 dur_ns; /* completion less submission */
	__u32 pid; /* thread group of tid */
	__u32 tid; /* thread that submitted */
	__s32 ret; /* result */
	__u32 file; /* handle */
	__s64 offset; /* where the I/O took place */
	__u32 size; /* bytes asked for, NO_SIZE32 when there are none */
	__u16 op_flags; /* enum operation_flag */
	__u16 aux; /* first numeric argument */
	__u64 user_data; /* as the program passed it */
};

enum content_status {
	/* hash is that of the content. */
	CONTENT_HASHED = 1,
	/* The content follows, to be hashed. */
	CONTENT_TO_HASH = 2,
	/* The content follows, to be kept. */
	CONTENT_PLAIN = 3,
	/* The memory could not be read without waiting for it. */
	CONTENT_UNREADABLE = 4,
	/* A part found no room in the ring. */
	CONTENT_NO_ROOM = 5,
	/* The beginning of bytes that a call moved on a stream socket follows (--spans). The
	 * record is of kind RECORD_CONTENT_PART; the call comes in its own record. */
	CONTENT_BEGINNING = 6,
	/* The beginning of bytes that a call of a TLS library moved follows, as they are before
	 * they are encrypted or after they were decrypted. There is no record of the call besides: ret has the
	 * bytes that it moved, size the address of the library's object for the connection, aux enum
	 * tls_event, and file the stream socket that it used, if it did. */
	CONTENT_TLS = 7,
};

/* What became of a connection of a TLS library. */
enum tls_event {
	TLS_EVENT_RECEIVED = 1,
	TLS_EVENT_SENT = 2,
	/* Keys were negotiated, or a part of that; no bytes moved. */
	TLS_EVENT_HANDSHAKE = 3,
	/* The object is freed, or made new. */
	TLS_EVENT_END = 4,
};

/* What a function of a TLS library does. Arguments of all: the object, and of those that move bytes the
 * buffer and its length. */
enum tls_function {
	/* It returns how many bytes it moved. */
	TLS_READ = 1,
	TLS_WRITE = 2,
	/* It stores that where its fourth argument says. */
	TLS_READ_EX = 3,
	TLS_WRITE_EX = 4,
	/* It sends bytes of a file, and returns how many. */
	TLS_SEND_FILE = 5,
	TLS_HANDSHAKE = 6,
	TLS_END = 7,
};

/* A call that moved data, with the hash of that or the data itself (--content):
 * kind is RECORD_DATA_CALL. Content that does not fit one piece comes before it
 * in records of kind RECORD_CONTENT_PART, in order; they repeat the call. The
 * bytes of the piece follow. */
struct data_call_record {
	struct call_record call; /* the call, wide or not */
	__s64 entry_pos; /* with CALL_POSITION_RACED: the lowest offset possible */
	__u64 hash; /* XXH64 with seed 0, with CONTENT_HASHED */
	__u64 at; /* byte of the content at which this piece begins */
	__u32 len; /* bytes of this piece that follow */
	__u32 status; /* enum content_status */
	__u64 content_bytes; /* bytes of content, all pieces */
	struct cache_facts cache; /* of the call */
};

enum file_flag {
	/* The path is cut: too deep, it changed while it was read, or the file
	 * lies on a mount that is no longer in any tree. */
	FILE_PATH_PARTIAL = 1,
	/* The name was already gone from its directory. */
	FILE_DELETED = 2,
};

/* Identity and path of a file: sent when a handle is first used, and again
 * when its path has changed. The path follows as its components from the leaf
 * up, each followed by '/': as seen from the root of its mount namespace. When
 * that is not the recorder's, the path inside the file system follows in the
 * same form: from the root of the file system, whatever is mounted where. */
struct file_record {
	__u8 kind; /* RECORD_FILE */
	__u8 flags; /* enum file_flag */
	__u16 path_len; /* bytes */
	__u32 handle; /* what call_record.file refers to */
	__u64 ts_ns; /* when the path was read */
	__u64 ino; /* inode number */
	__u64 size; /* bytes, when first seen */
	__u32 dev; /* device as stat reports it, the kernel's encoding */
	__u32 generation; /* inode generation */
	__u32 mode; /* st_mode */
	__u32 fs_magic; /* type of the file system, as statfs reports it */
	__u32 fs_dev; /* device of the file system, as mountinfo shows it */
	__u32 mnt_ns; /* inode of the mount namespace, 0 when there is none */
	__u16 fs_path_len; /* bytes */
	__u16 reserved[3]; /* 0 */
};

/* A mount in the recorder's own mount namespace, from /proc/self/mountinfo:
 * written by user space, not by the kernel side. All mounts of one state of
 * that list follow each other; the first has flag MOUNT_FIRST and takes the
 * place of all that came before. Strings follow: the root of the mount inside
 * its file system, and the mount point. */
struct mount_record {
	__u8 kind; /* RECORD_MOUNT */
	__u8 flags; /* enum mount_flag */
	__u16 root_len; /* bytes */
	__u32 fs_dev; /* device, the kernel's encoding */
	__u64 ts_ns; /* when the list was read */
	__u32 mnt_ns; /* inode of the recorder's mount namespace */
	__u16 point_len; /* bytes */
	__u16 reserved; /* 0 */
};

enum mount_flag {
	MOUNT_FIRST = 1,
};

/* A container of Kubernetes, as the kubelet names it: written by user space when it is first
 * seen. Id of the container, namespace, name and UID of the pod, and name of the container
 * follow. */
struct container_record {
	__u8 kind; /* RECORD_CONTAINER */
	__u8 reserved; /* 0 */
	__u16 id_len; /* bytes */
	__u16 namespace_len; /* bytes */
	__u16 pod_len; /* bytes */
	__u64 ts_ns; /* when it was seen */
	__u16 uid_len; /* bytes */
	__u16 name_len; /* bytes */
	__u32 reserved2; /* 0 */
};

enum task_event {
	/* In the recording from the start, or first seen. */
	TASK_SEEN = 1,
	TASK_FORK = 2,
	TASK_EXEC = 3,
	TASK_COMM = 4,
	TASK_EXIT = 5,
	/* What /proc says of a process whose threads the kernel side has taken
	 * in: written by user space. Only pid, uid, mnt_ns and the strings
	 * count. */
	TASK_DESCRIBED = 6,
};

/* Something happened to a thread. After TASK_EXEC and TASK_DESCRIBED, and after
 * a TASK_SEEN that comes with the thread's first call, follow the command line
 * (arguments, each followed by NUL), the executable's path and the cgroup's
 * path (both as components from the leaf up, each followed by '/'); after the
 * other events nothing. */
struct task_record {
	__u8 kind; /* RECORD_TASK */
	__u8 event; /* enum task_event */
	__u16 cmdline_len; /* bytes */
	__u16 exe_len; /* bytes */
	__u16 cgroup_len; /* bytes */
	__u64 ts_ns; /* when it happened */
	__u64 started_at_ns; /* when the thread began */
	__u64 cgroup_id; /* of cgroup v2, 0 when there is none */
	__u32 pid; /* thread group */
	__u32 tid; /* thread */
	__u32 ppid; /* thread group of the parent */
	__u32 uid; /* real user */
	__s32 exit_code; /* as wait(2) gives it, with TASK_EXIT */
	__u32 mnt_ns; /* inode of its mount namespace */
	__u8 comm[16]; /* name, padded with NUL */
};

/* From where in its program a call was made (--stacks); behind the record of the
 * call. The kernel side sends registers and the first bytes of the stack, which
 * follow; user space makes a number of the functions on it and drops them. */
struct stack_record {
	__u8 kind; /* RECORD_STACK */
	__u8 reserved; /* 0 */
	__u16 bytes; /* of the stack that follow */
	__u32 stack; /* number of the stack, from 1; 0: not known */
	__u64 ts_ns; /* when it was taken */
	__u64 request_ns; /* of the call */
	__u32 pid; /* process */
	__u32 tid; /* thread */
	__u64 ip; /* next instruction */
	__u64 sp; /* stack pointer */
	__u64 fp; /* frame pointer */
	__u64 lr; /* return address, where a register has it */
};

/* A function on such a stack: written by user space, when the recording is over.
 * Strings follow: path of the object as its process saw it, build id, name of the
 * function, file of the source. */
struct frame_record {
	__u8 kind; /* RECORD_FRAME */
	__u8 inlined; /* 1: its code is part of the next one's */
	__u16 frame; /* 0 is the innermost */
	__u32 stack; /* as in struct stack_record */
	__u64 ts_ns; /* when it was written */
	__s64 offset; /* of its return address in the object's file, NO_OFFSET when not known */
	__s64 function_offset; /* the same from the function's beginning */
	__u32 line; /* of the source, 0 when not known */
	__u16 object_len; /* bytes */
	__u16 build_id_len; /* bytes */
	__u16 function_len; /* bytes */
	__u16 source_len; /* bytes */
	__u32 reserved; /* 0 */
};

/* Counters of perf, as perf calls them. Each is a bit: 1 << COUNTER_CYCLES. */
enum counter {
	/* Of the processor. */
	COUNTER_CYCLES = 0,
	COUNTER_INSTRUCTIONS = 1,
	COUNTER_CACHE_REFERENCES = 2,
	COUNTER_CACHE_MISSES = 3,
	COUNTER_BRANCH_MISSES = 4,
	/* Of the kernel. */
	COUNTER_TASK_CLOCK = 5,
	COUNTER_PAGE_FAULTS = 6,
	COUNTER_CONTEXT_SWITCHES = 7,
	COUNTER_CPU_MIGRATIONS = 8,
};

/* By how much counters grew while a request was on a CPU (--counters); behind the
 * record of the request. */
struct counters_record {
	__u8 kind; /* RECORD_COUNTERS */
	__u8 unknown; /* bit i: values[i] could not be told */
	__u16 counters; /* bits of enum counter: values has them in that order */
	__u32 tid; /* thread */
	__u64 request_ns; /* of the request */
	__u64 dur_ns; /* one more than the request took: comes behind it in the order of time */
	__u64 values[5]; /* MAX_COUNTERS */
};

enum library_call_flag {
	/* The call has made a recorded system call: written before the record of that. */
	LIBRARY_CALL_BEGUN = 1,
	/* The call had not returned when its thread or the recording ended. */
	LIBRARY_CALL_PENDING = 2,
	/* No call: the thread is in none any more, because some never returned. */
	LIBRARY_CALL_NONE = 4,
	/* The call will never return, because of longjmp() or an exception; dur_ns is until that was
	 * found. */
	LIBRARY_CALL_ABANDONED = 8,
};

/* A call of a function of a library (--library). A path follows. */
struct library_call_record {
	__u8 kind; /* RECORD_LIBRARY_CALL */
	__u8 flags; /* enum library_call_flag */
	__u16 function; /* number of the function, see struct function_record */
	__u32 tid; /* thread */
	__u64 ts_ns; /* when it was entered */
	__u64 dur_ns; /* from then until the return, or until now */
	__u32 pid; /* process */
	__u32 file; /* handle of the file behind fd, 0 when there is none */
	__s32 fd; /* of its stream, or as it was passed or returned; -1 when there is none */
	__u8 depth; /* calls that it is in */
	__u8 reserved; /* 0 */
	__u16 path_len; /* bytes of the path, without NUL */
	__u64 parent_ns; /* ts_ns of the innermost of these, 0 when there is none */
	__u64 args[6]; /* LIBRARY_ARGS, as registers had them */
	__s64 ret; /* what it returned */
};

/* A function whose calls are recorded: written by user space before any of them. Path of the
 * library, name of the class, and name of the function follow. */
struct function_record {
	__u8 kind; /* RECORD_FUNCTION */
	__u8 result; /* enum of user space: what it returns */
	__u16 function; /* its number */
	__u32 by_descriptor; /* 1: its calls name no files: theirs are those of their descriptors */
	__u64 ts_ns; /* when it was found */
	__u8 roles[6]; /* enum of user space: what its arguments are; LIBRARY_ARGS */
	__u16 library_len; /* bytes */
	__u16 class_len; /* bytes */
	__u16 name_len; /* bytes */
	__u32 reserved2; /* 0 */
};

/* What the programs read of calls of a function. */
struct function_desc {
	__u8 stream; /* place of its FILE; RESULT_ARG: it returns one; NO_ARG: none */
	__u8 fd; /* place of its descriptor, as above */
	__u8 path; /* place of its path, NO_ARG: none */
	__u8 fileno_at; /* where a FILE has its descriptor */
	__u32 counted; /* 1: its calls are counted and have no records (--library-budget) */
};

/* Calls of a function that have no records, because it was called more often than
 * --library-budget allows: written by user space. */
struct library_count_record {
	__u8 kind; /* RECORD_LIBRARY_COUNT */
	__u8 begins; /* 1: its calls are counted from the end of this time on; `count` had records */
	__u16 function; /* number of the function, see struct function_record */
	__u32 pid; /* process; NO_PROCESS: not known */
	__u64 ts_ns; /* since when */
	__u64 dur_ns; /* from then until when */
	__u64 count; /* calls that began in this time */
};

/* A process that calls a function whose calls are counted. */
struct library_count_key {
	__u32 pid; /* thread group */
	__u32 function; /* number of the function */
};

/* Calls of a function on a CPU since the recording began. */
struct library_tally {
	__u64 calls; /* with a record */
	__u64 unsplit; /* counted, for whose process map `library_counts` had no room */
};

/* A thread has come by a static probe (--usdt). Its text follows. */
struct usdt_record {
	__u8 kind; /* RECORD_USDT */
	__u8 cut; /* 1: the text is longer */
	__u16 place; /* number of the place, see struct usdt_place_record */
	__u32 tid; /* thread */
	__u64 ts_ns; /* when */
	__u64 sp; /* stack pointer */
	__u32 pid; /* process */
	__u32 text_len; /* bytes of the text, without NUL */
};

/* A place in a program or library with a static probe: written by user space before any record
 * names it. Provider, name of the span, and kind of its text follow. */
struct usdt_place_record {
	__u8 kind; /* RECORD_USDT_PLACE */
	__u8 ends; /* 1: the probe ends spans; 0: it begins them */
	__u16 place; /* its number */
	__u16 span; /* the kind of spans: a begin belongs to an end with the same number */
	__u16 reserved; /* 0 */
	__u64 ts_ns; /* when it was found */
	__u16 provider_len; /* bytes */
	__u16 name_len; /* bytes */
	__u16 text_len; /* bytes */
	__u16 reserved2; /* 0 */
};

enum usdt_argument {
	/* There is none, or it is not known how to read it. */
	USDT_NONE = 0,
	USDT_CONSTANT = 1,
	/* In a register. */
	USDT_REGISTER = 2,
	/* In memory, at a distance from the address in a register. */
	USDT_MEMORY = 3,
};

/* Where the arguments are that the programs read at a place. */
struct usdt_desc {
	__s64 text_value; /* the constant, or the distance from the register */
	__s64 length_value; /* the same */
	__u16 text_at; /* of the register in struct pt_regs, bytes */
	__u16 length_at; /* the same */
	__u8 text; /* enum usdt_argument: the address of the text */
	__u8 length; /* enum usdt_argument: its bytes; USDT_NONE: it ends with NUL */
	__u8 length_bits; /* 1 << length_bits is the size of the argument, USDT_ARGUMENT_BITS at most */
	__u8 reserved; /* 0 */
};

enum context_kind {
	/* Where the thread has its context is not known. */
	CONTEXT_UNKNOWN = 0,
	/* No span was active. */
	CONTEXT_NONE = 1,
	/* A span was. */
	CONTEXT_SPAN = 2,
	/* The memory that has it could not be read. */
	CONTEXT_UNREADABLE = 3,
};

/* A call was made in another span than the last one of its thread, or with attributes of another
 * length (--otel-context): written before the record of the call. The attributes follow, as the program has
 * them. */
struct context_record {
	__u8 kind; /* RECORD_CONTEXT */
	__u8 context; /* enum context_kind */
	__u16 attributes_len; /* bytes */
	__u32 tid; /* thread */
	__u64 ts_ns; /* entry of the call */
	__u64 dur_ns; /* of the call */
	__u64 trace[2]; /* id of the trace, as bytes in memory */
	__u64 span; /* id of the span, as bytes in memory */
	__u32 pid; /* process */
	__u32 reserved; /* 0 */
};

/* What a process says of itself: written by user space when it has read it. Name of the service, and
 * names of the attributes of contexts by their number, each followed by NUL, follow. */
struct context_process_record {
	__u8 kind; /* RECORD_CONTEXT_PROCESS */
	__u8 reserved; /* 0 */
	__u16 service_len; /* bytes */
	__u32 pid; /* process */
	__u64 ts_ns; /* when it was read */
	__u32 keys_len; /* bytes */
	__u32 reserved2; /* 0 */
};

/* Where the threads of a process have the variable with their span contexts. */
struct context_place {
	__s64 offset; /* from the thread pointer, or in the block of its module */
	__u64 code_pages; /* that the process had when user space was asked to look */
	__u32 module; /* number of the module; 0: at a fixed distance from the thread pointer */
	__s32 dtv_at; /* where the address of the table of blocks is, from the thread pointer */
	__s32 length_at; /* where the table's length is, from its address */
	__u8 entry_shift; /* 1 << entry_shift bytes are an entry of the table */
	__u8 found; /* 1: the above is known; 0: there is no variable, as far as was seen */
	__u16 reserved; /* 0 */
};

/* Calls that were seen but whose record found no room. One a CPU and call in
 * map `lost`, exact; the same split by process and file in map `shed`. */
struct shed_key {
	__u32 cpu; /* where the record was dropped; in map `counted` with COUNTED_SIDE or without */
	__u32 syscall; /* row in bpf/syscalls.def */
	__u32 pid; /* thread group */
	__u32 file; /* handle, 0 when there is none */
};

struct shed_value {
	__u64 count; /* calls */
	__u64 errors; /* of which failed */
	__u64 bytes; /* moved */
	__u64 dur_ns; /* sum of durations */
	__u64 max_dur_ns; /* longest */
	__u64 first_at_ns; /* exit of the first */
	__u64 last_at_ns; /* exit of the last */
	__u64 hist[40]; /* durations, HIST_BUCKETS */
};

/* Counters of one CPU. Calls seen are those in the slot ring (the ring counts
 * them: slot_calls is filled in by user space), wide_calls and lost. */
struct cpu_stats {
	__u64 slot_calls; /* calls put into the slot ring */
	__u64 wide_calls; /* calls put into the wide ring */
	__u64 lost; /* calls whose record found no room */
	__u64 compat; /* calls by 32-bit programs, where they are not recorded */
	__u64 shed_overflow; /* losses that map `shed` had no room to split */
	__u64 file_retry; /* file records that had to be sent later */
	__u64 task_lost; /* task records that found no room */
	__u64 untracked; /* tasks for which no state could be allocated */
	__u64 scratch_busy; /* records dropped because no scratch was free */
	__u64 cost_ns; /* time in the programs of the calls that were timed */
	__u64 cost_calls; /* calls that were timed */
	__u64 faults; /* faults put into the slot ring, which slot_calls counts too */
	__u64 faults_lost; /* faults whose record found no room; lost counts them too */
	__u64 faults_unknown; /* faults whose mapping could not be looked up */
	__u64 writebacks; /* write-back records put into the wide ring */
	__u64 writebacks_lost; /* those that found no room; lost counts them too */
	__u64 layers; /* records of the layers below put into the slot ring, as faults */
	__u64 layers_lost; /* records of the layers below without room; lost counts them too */
	__u64 blocks; /* requests to devices put into the wide ring */
	__u64 blocks_lost; /* those that found no room; layers_lost counts them too */
	__u64 waits; /* of layers: waits */
	__u64 irqs; /* of layers: interrupts */
	__u64 caches; /* records of calls and faults that did something in the page cache */
	__u64 spans; /* of layers: parts of file systems */
	__u64 counters; /* of layers: counters of perf of requests */
	__u64 library_calls; /* calls of libraries put into the wide ring */
	__u64 library_unseen; /* calls of libraries in more than MAX_LIBRARY_DEPTH others */
	__u64 usdt; /* records of static probes put into the wide ring */
	__u64 contexts; /* records of span contexts put into the wide ring */
	__u64 contexts_unreadable; /* calls whose span context could not be read */
	__u64 library_counted; /* calls of libraries that were counted instead */
	__u64 reserved[1]; /* 0 */
};

#endif
