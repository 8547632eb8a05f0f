/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Operations of io_uring: one record each, made when it completes.
 *
 * Kernels differ in the tracepoints and in what they pass; there is a program
 * for each form, and the loader takes those that fit the kernel (BTF).
 */
#include "include/operations.h"

/* include/uapi/linux/io_uring.h */
enum {
	IORING_OP_POLL_ADD = 6,
	IORING_OP_FSYNC = 3,
	IORING_OP_RECVMSG = 10,
	IORING_OP_TIMEOUT = 11,
	IORING_OP_ACCEPT = 13,
	IORING_OP_OPENAT = 18,
	IORING_OP_CLOSE = 19,
	IORING_OP_FADVISE = 24,
	IORING_OP_MADVISE = 25,
	IORING_OP_RECV = 27,
	IORING_OP_OPENAT2 = 28,
	IORING_OP_SPLICE = 30,
	IORING_OP_TEE = 33,
	IORING_OP_SOCKET = 45,
	IORING_OP_URING_CMD = 46,
	IORING_OP_READ_MULTISHOT = 49,
	IORING_OP_RECV_ZC = 58,
	IORING_OP_PIPE = 62,

	IORING_SETUP_SQE128 = 1 << 10,
	IORING_SETUP_NO_SQARRAY = 1 << 16,
	IORING_CQE_F_MORE = 1 << 1,

	IORING_POLL_ADD_MULTI = 1,
	IORING_ACCEPT_MULTISHOT = 1,
	IORING_RECV_MULTISHOT = 2,
	IORING_URING_CMD_MULTISHOT = 2,
	IORING_TIMEOUT_MULTISHOT = 1 << 6,
};
#define IORING_FILE_INDEX_ALLOC 0xffffffffU
#define SPLICE_F_FD_IN_FIXED (1U << 31)

/* A ring of completions was found full: from then on all requests are indexed. */
__u32 overflow_seen;

static __always_inline bool is_multishot(struct sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_POLL_ADD:
		return sqe->len & IORING_POLL_ADD_MULTI;
	case IORING_OP_ACCEPT:
		return sqe->ioprio & IORING_ACCEPT_MULTISHOT;
	case IORING_OP_RECV:
	case IORING_OP_RECVMSG:
		return sqe->ioprio & IORING_RECV_MULTISHOT;
	case IORING_OP_TIMEOUT:
		return sqe->op_flags & IORING_TIMEOUT_MULTISHOT;
	case IORING_OP_URING_CMD:
		return sqe->op_flags & IORING_URING_CMD_MULTISHOT;
	case IORING_OP_READ_MULTISHOT:
	case IORING_OP_RECV_ZC:
		return true;
	}
	return false;
}

/* Brings the fields of an entry to their places, also those that some operations
 * use in their own way. */
static __always_inline void take_entry(struct operation *op, struct sqe *sqe)
{
	__u8 opcode = sqe->opcode;
	op->args[ARG_FD] = (__s64)sqe->fd;
	op->args[ARG_OFF] = sqe->off;
	op->args[ARG_ADDR] = sqe->addr;
	op->args[ARG_LEN] = sqe->len;
	op->args[ARG_FLAGS] = sqe->op_flags;
	op->args[ARG_FD_IN] = sqe->fd_in;
	op->args[ARG_ADDR3] = sqe->addr3;
	op->user_data = sqe->user_data;
	op->flags = sqe->flags & 0x7f;
	if (opcode == IORING_OP_CLOSE && sqe->fd_in) {
		op->args[ARG_FD] = (__s64)(__s32)(sqe->fd_in - 1);
		op->flags |= OP_FIXED_FILE;
	} else if ((opcode == IORING_OP_OPENAT || opcode == IORING_OP_OPENAT2 ||
		    opcode == IORING_OP_ACCEPT || opcode == IORING_OP_SOCKET ||
		    opcode == IORING_OP_PIPE) &&
		   sqe->fd_in) {
		op->flags |= OP_DIRECT;
	} else if (opcode == IORING_OP_FADVISE && sqe->addr) {
		/* Since 6.10 the length has 64 bits and a place of its own. */
		op->args[ARG_LEN] = sqe->addr;
	} else if (opcode == IORING_OP_MADVISE && sqe->off) {
		op->args[ARG_LEN] = sqe->off;
	}
}

/* The state of the present task when it is recorded. The thread of a ring with
 * SQPOLL belongs to the process that made the ring; no fork announces it. */
static __always_inline bool uring_recorded(struct task_struct *task)
{
	struct task_state *state = task_state_of(task);
	if (state)
		return is_recorded(state);
	/* Where the filters alone tell tasks it was judged when it got its name. */
	if (!(task->flags & PF_IO_WORKER) || filters_whole_machine())
		return false;
	state = task_state_of(task->group_leader);
	if (!state || state->flags & TASK_WAITS_FOR_EXEC)
		return false;
	state = take_in(task);
	if (!state || (filters(TASK_RULES) && !consider(task, NULL)))
		return false;
	announce_task(task, state, TASK_FORK, false);
	return true;
}

/* Makes a request known by its ring and user_data. */
static __always_inline void index_request(struct op_key *key, struct operation *op)
{
	struct op_key data = { .owner = op->ring, .id = op->user_data };
	op->indexed = 1;
	if (bpf_map_update_elem(&op_index, &data, &key->owner, BPF_NOEXIST)) {
		__u64 *request = bpf_map_lookup_elem(&op_index, &data);
		if (request && *request != key->owner)
			*request = OP_AMBIGUOUS;
	}
}

/* A request was made of the entry at `address`. */
static __always_inline int uring_begin(struct io_kiocb *req, __u64 address)
{
	if (req->opcode >= AIO_OPERATIONS)
		return 0;
	const volatile struct call_desc *desc = op_desc(req->opcode);
	if (!desc->selected)
		return 0;
	struct task_struct *task = current_task();
	if (!uring_recorded(task))
		return 0;
	struct op_beginning *begins = beginning_of(task);
	if (!begins) {
		COUNT(untracked);
		return 0;
	}
	struct io_ring_ctx *ring = READ_LINK(io_kiocb, req, ctx);
	struct op_key *key = &begins->key;
	struct sqe *sqe = &begins->sqe;
	struct operation *op = &begins->op;
	__builtin_memset(op, 0, sizeof(*op));
	key->owner = *(volatile __u64 *)&req;
	key->id = 0;
	bpf_probe_read_kernel(sqe, sizeof(*sqe), (void *)address);
	/* What the kernel has taken counts, whatever is in the entry by now. */
	sqe->opcode = req->opcode;
	op->number = req->opcode;
	op->ring = *(volatile __u64 *)&ring;
	take_entry(op, sqe);
	if (task->flags & PF_IO_WORKER)
		op->flags |= OP_SQPOLL;
	if (desc->fd == ARG_FD || desc->fd2 == ARG_FD) {
		__s32 fd = op->args[ARG_FD];
		__u64 file = op->flags & OP_FIXED_FILE ? fixed_file(op->ring, fd)
						       : (__u64)file_of_fd(task, fd);
		if (desc->fd == ARG_FD)
			op->file_ptr = file;
		else
			op->file2_ptr = file;
	}
	if (desc->fd == ARG_FD_IN)
		op->file_ptr = sqe->op_flags & SPLICE_F_FD_IN_FIXED
				       ? fixed_file(op->ring, sqe->fd_in)
				       : (__u64)file_of_fd(task, sqe->fd_in);
	bool recorded = op_begin();
#if HAVE_LAYERS
	struct task_state *state = task_state_of(task);
	if (state && layer_config.block)
		state->layers.op_ns = recorded ? op->ts_ns : 0;
#endif
	if (!recorded)
		return 0;
	if (op_judged_by_paths(op))
		op_judge_paths(op);
	if (op_has_names(op))
		op_read_names();
	if (op_keep_anyway(key) && unlikely(is_multishot(sqe) || overflow_seen)) {
		struct operation *kept = bpf_map_lookup_elem(&operations, key);
		if (kept)
			index_request(key, kept);
	}
	return 0;
}

/* The entry of which the last request of `ring` was made: its number is
 * published after the whole batch, so the program cannot use it again yet.
 * Addresses are read as numbers: arithmetic on kernel pointers is refused. */
static __always_inline __u64 last_entry(struct io_ring_ctx *ring)
{
	__u32 entries = ring->sq_entries;
	__u64 index = (ring->cached_sq_head - 1) & (entries - 1);
	if (!(ring->flags & IORING_SETUP_NO_SQARRAY)) {
		__u64 array = (__u64)BPF_CORE_READ(ring, sq_array);
		__u32 value = 0;
		if (array)
			bpf_probe_read_kernel(&value, sizeof(value), (void *)(array + 4 * index));
		index = value;
	}
	if (ring->flags & IORING_SETUP_SQE128)
		index <<= 1;
	return (__u64)BPF_CORE_READ(ring, sq_sqes) + sizeof(struct sqe) * index;
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(uring_submit_req, struct io_kiocb *req)
{
	return uring_begin(req, last_entry(READ_LINK(io_kiocb, req, ctx)));
}

/* 6.1 and its like. */
SEC("tp_btf/io_uring_submit_sqe")
int BPF_PROG(uring_submit_sqe, struct io_kiocb *req, bool force_nonblock)
{
	return uring_begin(req, last_entry(READ_LINK(io_kiocb, req, ctx)));
}

/* The kernel refused the entry; a completion follows. */
SEC("tp_btf/io_uring_req_failed")
int BPF_PROG(uring_req_failed, const struct io_uring_sqe *sqe, struct io_kiocb *req, int error)
{
	return uring_begin(req, (__u64)sqe);
}

SEC("tp_btf/io_uring_queue_async_work")
int BPF_PROG(uring_queue_async_work, struct io_kiocb *req, int hashed)
{
	struct op_key key = { .owner = *(volatile __u64 *)&req };
	struct operation *op = bpf_map_lookup_elem(&operations, &key);
	if (op)
		op->flags |= OP_WORKER;
	return 0;
}

/* Where the I/O took place, or what part of the file was meant. */
static __always_inline __s64 uring_offset(struct operation *op,
					  const volatile struct call_desc *desc, __u64 req,
					  __u64 file, __s64 ret)
{
	if (desc->offset == NO_ARG)
		return NO_OFFSET;
	__s64 asked = op->args[desc->offset & 7];
	bool moves = desc->flags & DESC_RET_BYTES;
	if (!moves) {
		/* fsync without a length is one of the whole file. */
		if (op->number == IORING_OP_FSYNC && !op->size)
			return NO_OFFSET;
		return asked;
	}
	if (!file || desc->fd != ARG_FD)
		return asked < 0 ? NO_OFFSET : asked;
	struct file *object = KERNEL_OBJECT(file, file);
	if (!is_seekable(file_mode(object)))
		return NO_OFFSET;
	bool appends = desc->flags & DESC_WRITES && write_appends(object, op->args[ARG_FLAGS]);
	if (asked != -1 && !appends)
		return asked;
	/* At the position, or at the end: the request has its own copy of the
	 * position, which the I/O has moved. */
	if (ret < 0 || !req)
		return NO_OFFSET;
	return READ(KERNEL_OBJECT(kiocb, req), ki_pos) - ret;
}

/* Completion `ret` of the request at address `req`; 0: not told which. */
static __always_inline int uring_end(__u64 ring, __u64 req, __u64 user_data, __s32 ret, __u64 now)
{
	struct op_key key = { .owner = req };
	struct op_end end = { .ret = ret, .now = now };
	bool more = !req;
	if (more) {
		struct op_key data = { .owner = ring, .id = user_data };
		__u64 *request = bpf_map_lookup_elem(&op_index, &data);
		if (!request || *request == OP_AMBIGUOUS)
			return 0;
		key.owner = *request;
		end.flags = OP_MORE;
	} else if (ret == 0) {
		struct io_kiocb *object = KERNEL_OBJECT(io_kiocb, req);
		if (unlikely(op_desc(READ(object, opcode))->flags & DESC_RENAMES))
			__sync_fetch_and_add(&rename_epoch, 1);
	}
	struct operation *op = bpf_map_lookup_elem(&operations, &key);
	if (!op)
		return 0;
	const volatile struct call_desc *desc = op_desc(op->number);
	__u64 file = op->file_ptr;
	/* Found only now: another one, or one that was opened. */
	__u64 late = 0;
	if (desc->fd == ARG_FD && op->number != IORING_OP_CLOSE) {
		/* The one that was found when the request was carried out: a
		 * request before it in a chain may have opened it. */
		__u64 found = (__u64)READ(KERNEL_OBJECT(io_kiocb, key.owner), file);
		if (found && found != file) {
			file = late = found;
			struct file *object = KERNEL_OBJECT(file, found);
			if (!type_passes(READ(object, f_inode), file_mode(object))) {
				if (!more)
					op_forget(&key, op);
				return 0;
			}
		}
	}
	end.offset = uring_offset(op, desc, more ? 0 : key.owner, file, ret);
	if (desc->flags & DESC_RET_FD && ret >= 0) {
		struct task_struct *task = current_task();
		if (op->flags & OP_DIRECT) {
			__u32 index = op->args[ARG_FD_IN];
			late = fixed_file(ring, index == IORING_FILE_INDEX_ALLOC ? (__u32)ret
										 : index - 1);
		} else if (task->tgid == (__s32)op->pid) {
			late = (__u64)file_of_fd(task, ret);
		}
	}
	/* A worker also carries out what is linked to its request, and only the
	 * completion shows that. The thread of a ring counts as a worker too. */
	struct task_struct *worker = current_task();
	if (worker->flags & PF_IO_WORKER && worker->pid != (__s32)op->tid)
		op->flags |= OP_WORKER;
	if (late && (config.detail != DETAIL_RAW || filters(1 << RULE_PATH) || filter.file_types)) {
		/* By way of memory, which makes a number of the pointer. */
		*(volatile __u64 *)&op->file_ptr = late;
		op_late_file(op, *(volatile __u64 *)&op->file_ptr, end.now,
			     desc->flags & DESC_RET_FD);
	} else if (filter.file_types && desc->statx != NO_ARG && ret == 0) {
		op_judge_statx(op);
	}
	if (op->number == IORING_OP_FSYNC && !op->size) {
		op->size = NO_SIZE;
		op->sized = 0;
	}
	if (more) {
		/* A row of its own; the next one begins here. */
		op_record(&key, op, &end);
		op->ts_ns = end.now;
		return 0;
	}
	op_finish(&key, op, &end);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(uring_complete, struct io_ring_ctx *ring, void *req, struct io_uring_cqe *cqe)
{
	return uring_end(*(volatile __u64 *)&ring, (__u64)req, cqe->user_data, cqe->res,
			 bpf_ktime_get_ns());
}

/* Up to 6.13 or so the completion came by value. */
SEC("tp_btf/io_uring_complete")
int BPF_PROG(uring_complete_values, void *ring, void *req, __u64 user_data, int res)
{
	return uring_end((__u64)ring, (__u64)req, user_data, res, bpf_ktime_get_ns());
}

static long index_step(struct bpf_map *map, const void *key, void *value, void *context)
{
	struct op_key at = *(const struct op_key *)key;
	struct operation *op = value;
	if (op->ring && !op->claimed)
		index_request(&at, op);
	return 0;
}

/* The ring of completions was full, and the kernel keeps this one aside. It
 * does not say of which request it is: taken when only one can be meant. */
SEC("tp_btf/io_uring_cqe_overflow")
int BPF_PROG(uring_cqe_overflow, void *context, __u64 user_data, int res, __u32 cqe_flags)
{
	struct op_key data = { .owner = (__u64)context, .id = user_data };
	__u64 now = bpf_ktime_get_ns();
	/* Takes milliseconds, but only once in a recording. */
	if (!overflow_seen && !__sync_lock_test_and_set(&overflow_seen, 1))
		bpf_for_each_map_elem(&operations, index_step, NULL, 0);
	if (cqe_flags & IORING_CQE_F_MORE)
		return uring_end(data.owner, 0, user_data, res, now);
	__u64 *request = bpf_map_lookup_elem(&op_index, &data);
	if (!request || *request == OP_AMBIGUOUS)
		return 0;
	return uring_end(data.owner, *request, user_data, res, now);
}
