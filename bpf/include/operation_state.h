/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is kept of operations of io_uring and AIO while they are on their way.
 */
#ifndef FATHOM_OPERATION_STATE_H
#define FATHOM_OPERATION_STATE_H

#include "maps.h"

const volatile struct call_desc op_descs[MAX_OPERATIONS] SEC(".rodata.opdescs");

static __always_inline const volatile struct call_desc *op_desc(__u64 number)
{
	barrier_var(number);
	return &op_descs[number & (MAX_OPERATIONS - 1)];
}

/* include/uapi/linux/io_uring.h: an entry of the submission queue. An iocb is
 * brought into the same form. */
struct sqe {
	__u8 opcode;
	__u8 flags;
	__u16 ioprio;
	__s32 fd;
	__u64 off;
	__u64 addr;
	__u32 len;
	__u32 op_flags;
	__u64 user_data;
	__u16 buf_index;
	__u16 personality;
	__u32 fd_in;
	__u64 addr3;
	__u64 pad;
};

/* include/uapi/linux/aio_abi.h, little endian */
struct iocb {
	__u64 data;
	__u32 key;
	__u32 rw_flags;
	__u16 opcode;
	__s16 reqprio;
	__s32 fd;
	__u64 buf;
	__u64 nbytes;
	__u64 offset;
	__u64 reserved;
	__u32 flags;
	__u32 resfd;
};

/* The fields in the order of operations.def. */
enum { ARG_FD, ARG_OFF, ARG_ADDR, ARG_LEN, ARG_FLAGS, ARG_FD_IN, ARG_ADDR3, OP_ARGS = 8 };

/* io_uring: the address of the request, 0. AIO: the address of the context,
 * the user's of the iocb. */
struct op_key {
	__u64 owner;
	__u64 id;
};

enum op_left { LEFT_BY_TYPE = 1, LEFT_BY_PATH = 2 };

struct operation {
	__u64 args[OP_ARGS];
	__u64 ts_ns; /* submission */
	__u64 user_data;
	__u64 ring; /* struct io_ring_ctx */
	__u64 file_ptr; /* struct file behind the descriptor */
	__u64 file2_ptr; /* and behind the second one */
	__u64 size; /* bytes asked for, NO_SIZE if there are none */
	__u64 turn; /* AIO: completions before this one are of others */
	__u64 done_ns; /* AIO: when the I/O ended, 0 if that was not seen */
	__s64 done_ret; /* AIO: with what result */
	__s64 done_offset; /* AIO: where it took place */
	__u32 number; /* place in op_descs */
	__u32 flags; /* enum operation_flag */
	__u32 pid;
	__u32 tid;
	__u32 file; /* handle */
	__u32 file2;
	__u32 claimed; /* whoever sets it writes the record */
	__u32 named; /* op_names has an entry */
	__u32 indexed; /* op_index has an entry */
	__u32 seekable; /* the file has positions */
	__u32 left; /* enum op_left: filters that do not let its file pass */
	__u32 sized; /* size is what the program passed */
	__u32 created; /* it opened a file that it made itself */
	/* Its record, as it is made. */
	struct call_record call;
	struct operation_record slot;
};

/* An operation that begins: the present task's, as it is too large for the stack. */
struct op_beginning {
	struct op_key key;
	struct operation op;
	struct sqe sqe; /* io_uring */
	struct iocb iocb; /* AIO */
};
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct op_beginning);
} beginnings SEC(".maps");

/* Null when there is no memory. */
static __always_inline struct op_beginning *beginning_of(struct task_struct *task)
{
	return bpf_task_storage_get(&beginnings, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Operations on their way. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct op_key);
	__type(value, struct operation);
} operations SEC(".maps");

/* Some completions of io_uring do not name the request: the further ones of a
 * multishot request, and all while the ring of completions is full. Requests
 * by ring and user_data; OP_AMBIGUOUS when several have the same. Only kept for
 * multishot requests, until a ring of completions is found full. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct op_key);
	__type(value, __u64);
} op_index SEC(".maps");
#define OP_AMBIGUOUS (~0ULL)

/* What is known of the contexts of AIO. */
struct aio_state {
	/* Completions that were looked at, counted on without end from the
	 * position at which the context was first seen. */
	__u64 seen;
	__u64 live; /* operations that have not ended */
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct aio_state);
} aio_states SEC(".maps");

/* The strings of those that have some; string2 follows string1. */
struct op_names {
	__u32 dir1;
	__u32 dir2;
	__u32 flags; /* enum call_flag */
	__u16 len1;
	__u16 len2;
	__u32 root;
	__u32 arg_flags;
	__u64 how[3];
	__u8 text[2 * MAX_PATH];
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, struct op_key);
	__type(value, struct op_names);
} op_names SEC(".maps");

#endif
