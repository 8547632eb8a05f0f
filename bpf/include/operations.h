/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Operations of io_uring and AIO: kept from their submission to their
 * completion, then written as records like calls.
 *
 * Everything is read at the submission, where the program's memory and
 * descriptors are at hand; a completion may come in any task, or in none.
 */
#ifndef FATHOM_OPERATIONS_H
#define FATHOM_OPERATIONS_H

#include "call_filter.h"
#include "emit.h"

#if !HAVE_OPERATIONS
static __always_inline void op_pending(void)
{
}
#else

#include "operation_state.h"

/* What is known of an operation as it ends. */
struct op_end {
	__u64 now;
	__s64 ret;
	__s64 offset; /* where it took place; NO_OFFSET: not known */
	__u32 flags; /* enum operation_flag, added */
	__u32 pending; /* 1: it had not ended, or was not seen to end */
};

/* What file_handle() says of the file at `address`. */
__noinline __u64 name_of_address(__u64 address, __u64 now, bool wanted)
{
	struct file *file = KERNEL_OBJECT(file, address);
	/* By calls: what comes of them is a number to the verifier. */
	return file_handle((__u64)BPF_CORE_READ(file, f_inode),
			   (__u64)BPF_CORE_READ(file, f_path.dentry),
			   (__u64)BPF_CORE_READ(file, f_path.mnt), now, wanted);
}

/* An operation has its file only as it ends; `opened`: it has made it. */
__noinline int op_late_file(struct operation *op, __u64 address, __u64 now, bool opened)
{
	if (!op)
		return 0;
	struct file *file = KERNEL_OBJECT(file, address);
	struct inode *inode = READ(file, f_inode);
	op->left = 0;
	op->created = opened && READ(file, f_mode) & FMODE_CREATED;
	if (opened ? filter.file_types && !(filter.path_types & type_bit(inode))
		   : !type_passes(inode, READ(inode, i_mode)))
		op->left |= LEFT_BY_TYPE;
	if (config.detail == DETAIL_RAW && !filters(1 << RULE_PATH))
		return 0;
	__u64 name = name_of_address(address, now, !filters(1 << RULE_PATH));
	if (filters(1 << RULE_PATH) && name >> NAME_VERDICT_SHIFT == VERDICT_LEFT)
		op->left |= LEFT_BY_PATH;
	op->file = name;
	return 0;
}

/* Whether an operation is judged by the paths that it was given, as its file is not known
 * at its beginning. */
static __always_inline bool op_judged_by_paths(struct operation *op)
{
	const volatile struct call_desc *desc = op_desc(op->number);
	return filters(1 << RULE_PATH) && !op->file_ptr && !op->file2_ptr &&
	       (desc->path1 || desc->path2);
}

/* Judges such an operation. */
__noinline int op_judge_paths(struct operation *op)
{
	if (!op)
		return 0;
	const volatile struct call_desc *desc = op_desc(op->number);
	struct task_struct *task = current_task();
	op->left |= LEFT_BY_PATH;
	if (desc->path1) {
		__s32 dirfd = desc->dirfd1 != NO_ARG ? (__s32)op->args[desc->dirfd1 & 7] : AT_FDCWD;
		if (judge_argument(task, dirfd, op->args[desc->string1 & 7]) != VERDICT_LEFT)
			op->left &= ~LEFT_BY_PATH;
	}
	if (desc->path2) {
		__s32 dirfd = desc->dirfd2 != NO_ARG ? (__s32)op->args[desc->dirfd2 & 7] : AT_FDCWD;
		if (judge_argument(task, dirfd, op->args[desc->string2 & 7]) != VERDICT_LEFT)
			op->left &= ~LEFT_BY_PATH;
	}
	return 0;
}

/* Judges by its type the file that a statx has described, if the present task
 * is one of its process. */
static __always_inline void op_judge_statx(struct operation *op)
{
	const volatile struct call_desc *desc = op_desc(op->number);
	__u16 mode = 0;
	if (config.detail == DETAIL_RAW || current_task()->tgid != (__s32)op->pid ||
	    bpf_probe_read_user(&mode, sizeof(mode),
				(void *)op->args[desc->statx & 7] + STATX_MODE_AT))
		return;
	if (filter.path_types & 1 << (mode >> 12))
		op->left &= ~LEFT_BY_TYPE;
	else
		op->left |= LEFT_BY_TYPE;
}

/* Whether an operation that has ended is to be recorded. */
static __always_inline bool op_passes(struct operation *op, const volatile struct call_desc *desc,
				      struct op_end *end)
{
	if (filter.min_dur_ns && end->now - op->ts_ns < filter.min_dur_ns)
		return false;
	if (filter.errors_only && (end->pending || !is_error(desc->flags, end->ret)))
		return false;
	return !op->left;
}

/* struct io_ring_ctx -> the registered file with that index. */
static __always_inline __u64 fixed_file(__u64 ring, __u32 index)
{
	struct io_ring_ctx *ctx = (struct io_ring_ctx *)ring;
	struct io_ring_ctx___array *old = (struct io_ring_ctx___array *)ring;
	__u64 file = 0;
	if (bpf_core_field_exists(struct io_file_table, data)) {
		if (index >= BPF_CORE_READ(ctx, file_table.data.nr))
			return 0;
		__u64 slot = (__u64)BPF_CORE_READ(ctx, file_table.data.nodes) + 8ULL * index;
		__u64 node = 0;
		bpf_probe_read_kernel(&node, sizeof(node), (void *)slot);
		if (node)
			file = BPF_CORE_READ((struct io_rsrc_node *)node, file_ptr);
	} else if (bpf_core_field_exists(old->nr_user_files)) {
		if (index >= BPF_CORE_READ(old, nr_user_files))
			return 0;
		__u64 slot = (__u64)BPF_CORE_READ(old, file_table.files) + 8ULL * index;
		bpf_probe_read_kernel(&file, sizeof(file), (void *)slot);
	}
	return file & ~7ULL;
}

/* Reads the strings of the present task's operation that begins. */
__noinline int op_read_names(void)
{
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	struct op_beginning *begins = beginning_of(task);
	if (!state || !begins)
		return 0;
	struct operation *op = &begins->op;
	const volatile struct call_desc *desc = op_desc(op->number);
	struct scratch *scratch = scratch_get();
	if (!scratch)
		return 0;
	struct op_names *names = (void *)scratch->data;
	__builtin_memset(names, 0, sizeof(*names) - sizeof(names->text));
	bool full = config.detail == DETAIL_FULL;
	__u32 at = sizeof(*names) - sizeof(names->text);
	__u64 now = bpf_ktime_get_ns();
	if (desc->how != NO_ARG &&
	    read_how(names->how, op->args[desc->how & 7], op->args[desc->size & 7]))
		names->flags |= CALL_HAS_HOW;
	if (desc->path1 || desc->path2)
		names->root = start_of_path(state, AT_FDCWD, true, now);
	if (desc->string1 != NO_ARG) {
		__s32 dirfd = desc->dirfd1 != NO_ARG ? (__s32)op->args[desc->dirfd1 & 7] : AT_FDCWD;
		__u64 address = op->args[desc->string1 & 7];
		long n = full && address ? append_string(scratch, at, address) : -1;
		if (!address)
			names->arg_flags |= ARG_STRING1_NULL;
		if (n < 0 || n >= MAX_PATH)
			names->flags |= CALL_STRING1_PARTIAL;
		if (n >= 0) {
			if (desc->path1) {
				bool in_root = names->flags & CALL_HAS_HOW &&
					       names->how[2] & RESOLVE_IN_ROOT;
				names->dir1 = n > 0 && scratch->data[at] == '/' && !in_root
						      ? names->root
						      : start_of_path(state, dirfd, false, now);
				if (in_root)
					names->root = names->dir1;
			}
			if (n >= MAX_PATH)
				n = MAX_PATH - 1;
			n &= MAX_PATH - 1;
			names->len1 = n;
			at += n;
		}
	}
	if (desc->string2 != NO_ARG) {
		__s32 dirfd = desc->dirfd2 != NO_ARG ? (__s32)op->args[desc->dirfd2 & 7] : AT_FDCWD;
		at &= SCRATCH_BYTES / 2 - 1;
		__u64 address = op->args[desc->string2 & 7];
		long n = full && address ? append_string(scratch, at, address) : -1;
		if (!address)
			names->arg_flags |= ARG_STRING2_NULL;
		if (n < 0 || n >= MAX_PATH)
			names->flags |= CALL_STRING2_PARTIAL;
		if (n >= 0) {
			if (desc->path2)
				names->dir2 = n > 0 && scratch->data[at] == '/'
						      ? names->root
						      : start_of_path(state, dirfd, false, now);
			if (n >= MAX_PATH)
				n = MAX_PATH - 1;
			n &= MAX_PATH - 1;
			names->len2 = n;
		}
	}
	op->named = !bpf_map_update_elem(&op_names, &begins->key, scratch->data, BPF_ANY);
	scratch_put(scratch);
	return 0;
}

static __always_inline __u32 op_call_flags(bool pending)
{
	return pending ? CALL_PENDING : 0;
}

/* Writes the record of an operation: into a slot when it fits. */
__noinline int op_wide(struct op_key *key, struct operation *op, __u32 op_flags)
{
	if (!key || !op)
		return 0;
	struct call_record *call = &op->call;
	const volatile struct call_desc *desc = op_desc(op->number);
	struct scratch *scratch = scratch_get();
	if (!scratch) {
		COUNT(scratch_busy);
		return 0;
	}
	struct wide_call_record *record = (void *)scratch->data;
	__builtin_memset(record, 0, sizeof(*record));
	call->kind = RECORD_WIDE_CALL;
	record->fd2 = -1;
	record->offset2 = NO_OFFSET;
	record->op_flags = op_flags;
	record->user_data = op->user_data;
	if (op->sized)
		record->arg_flags |= ARG_SIZE;
	if (op->created)
		record->arg_flags |= ARG_CREATED;
	if (config.detail != DETAIL_FULL)
		call->flags |= CALL_NO_STRINGS;
	if (desc->extra[0] != NO_ARG)
		record->extra[0] = op->args[desc->extra[0] & 7];
	if (desc->extra[1] != NO_ARG)
		record->extra[1] = op->args[desc->extra[1] & 7];
	if (desc->extra[2] != NO_ARG)
		record->extra[2] = op->args[desc->extra[2] & 7];
	if (desc->fd2 != NO_ARG) {
		record->fd2 = op->args[desc->fd2 & 7];
		record->file2 = op->file2;
	}
	if (desc->offset2 != NO_ARG && (__s64)op->args[desc->offset2 & 7] >= 0)
		record->offset2 = op->args[desc->offset2 & 7];
	record->dirfd1 = desc->dirfd1 != NO_ARG ? op->args[desc->dirfd1 & 7] : AT_FDCWD;
	record->dirfd2 = desc->dirfd2 != NO_ARG ? op->args[desc->dirfd2 & 7] : AT_FDCWD;
	__u32 length = 0;
	/* Kernels before 6.2 take no key out of memory that a caller passes. */
	struct op_key at = *key;
	struct op_names *names = op->named ? bpf_map_lookup_elem(&op_names, &at) : NULL;
	if (names) {
		record->dir1 = names->dir1;
		record->dir2 = names->dir2;
		record->string1_len = names->len1;
		record->string2_len = names->len2;
		record->root = names->root;
		record->arg_flags |= names->arg_flags;
		call->flags |= names->flags;
		if (names->flags & CALL_HAS_HOW) {
			record->extra[0] = names->how[0];
			record->extra[1] = names->how[1];
			record->extra[2] = names->how[2];
		}
		length = (names->len1 + names->len2) & (2 * MAX_PATH - 1);
		bpf_probe_read_kernel(scratch->data + sizeof(*record), length, names->text);
	} else {
		if (desc->string1 != NO_ARG)
			call->flags |= CALL_STRING1_PARTIAL;
		if (desc->string2 != NO_ARG)
			call->flags |= CALL_STRING2_PARTIAL;
	}
	/* The buffer of statx is at hand when the task is one of the process. */
	struct task_struct *task = current_task();
	if (desc->statx != NO_ARG && config.detail != DETAIL_RAW && !call->ret &&
	    !(call->flags & CALL_PENDING) && task->tgid == (__s32)op->pid) {
		if (read_statx(record, op->args[desc->statx & 7]))
			call->flags |= CALL_HAS_STAT;
	}
	record->call = *call;
	bool sent = wide_output(scratch->data, sizeof(*record) + length);
	scratch_put(scratch);
	return sent;
}

static __always_inline bool op_slot(struct operation *op, struct call_record *call, __u32 op_flags)
{
	struct operation_record *record = &op->slot;
	record->kind = RECORD_OPERATION;
	record->flags = call->flags;
	record->syscall = call->syscall;
	record->fd = call->fd;
	record->ts_ns = call->ts_ns;
	record->dur_ns = call->dur_ns;
	record->pid = call->pid;
	record->tid = call->tid;
	record->ret = call->ret;
	record->file = call->file;
	record->offset = call->offset;
	record->size = call->size;
	record->op_flags = op_flags;
	record->aux = call->aux;
	record->user_data = op->user_data;
	return slot_output_kind(record, RECORD_OPERATION);
}

/* Writes the record of an operation, which is made in the operation's own memory:
 * the frames of all callers share 512 bytes before 6.13. */
__noinline int op_record(struct op_key *key, struct operation *op, struct op_end *end)
{
	if (!key || !op || !end)
		return 0;
	const volatile struct call_desc *desc = op_desc(op->number);
	if (!op_passes(op, desc, end))
		return 0;
	struct call_record *call = &op->call;
	__u32 op_flags = op->flags | end->flags;
	call->kind = RECORD_CALL;
	call->flags = op_call_flags(end->pending);
	call->syscall = desc->syscall;
	call->fd = desc->fd != NO_ARG ? (__s32)op->args[desc->fd & 7] : -1;
	call->ts_ns = op->ts_ns;
	call->dur_ns = end->now - op->ts_ns;
	call->pid = op->pid;
	call->tid = op->tid;
	call->ret = end->pending ? 0 : end->ret;
	call->file = op->file;
	call->aux = desc->aux != NO_ARG ? op->args[desc->aux & 7] : 0;
	call->offset = end->offset;
	call->size = op->size;
	if (config.counters) {
		if (!end->pending)
			count_call(call, desc->flags, false);
		return 0;
	}
	if (config.tail && !end->pending && counted_instead(call, desc->flags, 0, false))
		return 0;
	bool small = call->size < NO_SIZE32 || (call->size == NO_SIZE && !op->sized);
	bool sent;
	if (desc->flags & DESC_WIDE || !small || call->ret != (__s32)call->ret ||
	    call->aux > 0xffff) {
		sent = op_wide(key, op, op_flags);
		if (sent)
			COUNT(wide_calls);
	} else {
		sent = op_slot(op, call, op_flags);
	}
	if (!sent)
		lose(call, desc->flags);
	return 0;
}

/* Forgets an operation. */
static __always_inline void op_forget(struct op_key *key, struct operation *op)
{
	if (op->named)
		bpf_map_delete_elem(&op_names, key);
	if (op->indexed) {
		struct op_key data = { .owner = op->ring, .id = op->user_data };
		__u64 *request = bpf_map_lookup_elem(&op_index, &data);
		if (request && *request == key->owner)
			bpf_map_delete_elem(&op_index, &data);
	}
	if (key->id) {
		struct aio_state *context = bpf_map_lookup_elem(&aio_states, &key->owner);
		if (context)
			__sync_fetch_and_add(&context->live, -1);
	}
	bpf_map_delete_elem(&operations, key);
}

/* The operation is over: writes its record, unless another CPU does, and
 * forgets it. */
static __always_inline void op_finish(struct op_key *key, struct operation *op, struct op_end *end)
{
	if (__sync_lock_test_and_set(&op->claimed, 1))
		return;
	op_record(key, op, end);
	op_forget(key, op);
}

/* Writes what is known of an operation of which no end was seen; `flags`: of
 * enum operation_flag. */
__noinline int op_give_up(struct op_key *key, struct operation *op, __u32 flags)
{
	if (!key || !op)
		return 0;
	struct op_end end = {
		.now = bpf_ktime_get_ns(),
		.offset = NO_OFFSET,
		.flags = flags,
		.pending = 1,
	};
	const volatile struct call_desc *desc = op_desc(op->number);
	if (op->seekable && desc->offset != NO_ARG && desc->flags & DESC_RET_BYTES &&
	    (__s64)op->args[desc->offset & 7] >= 0)
		end.offset = op->args[desc->offset & 7];
	struct op_key at = *key; /* as in op_wide() */
	op_finish(&at, op, &end);
	return 0;
}

/* Positions in a stream are not known after an operation on it. A function of its own, as the frame
 * of op_begin() has no room. */
__noinline int op_on_stream(__u64 address)
{
	struct file *file = KERNEL_OBJECT(file, address);
	struct inode *inode = READ(file, f_inode);
	lose_stream(inode_address(file), READ(inode, i_ino), STREAM_IN | STREAM_OUT);
	return 0;
}

/* An operation begins, made by the present task: beginning_of() has its arguments,
 * number, flags, files and what it is known by. Returns whether it is recorded; then
 * op_judge_paths() and op_read_names(), if it may have some, and op_keep() are due, in the
 * caller: the frames of a chain of calls share 512 bytes before 6.13. */
__noinline int op_begin(void)
{
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	struct op_beginning *begins = beginning_of(task);
	if (!state || !begins)
		return 0;
	struct operation *op = &begins->op;
	const volatile struct call_desc *desc = op_desc(op->number);
	if (desc->all_types && !config.all_file_types)
		return 0;
	if (op->file_ptr || op->file2_ptr) {
		bool storage = false;
		struct file *file = KERNEL_OBJECT(file, op->file_ptr);
		struct file *file2 = KERNEL_OBJECT(file, op->file2_ptr);
		if (op->file_ptr) {
			__u32 mode = file_mode(file);
			storage |= type_passes(READ(file, f_inode), mode);
			op->seekable = is_seekable(mode);
		}
		if (op->file2_ptr)
			storage |= type_passes(READ(file2, f_inode), file_mode(file2));
		if (!storage)
			return 0;
		if (config.streams && op->file_ptr)
			op_on_stream(op->file_ptr);
		if (config.streams && op->file2_ptr)
			op_on_stream(op->file2_ptr);
		if (filters(1 << RULE_PATH)) {
			bool pass = op->file_ptr
					    ? files_pass(state, file, op->file2_ptr ? file2 : NULL,
							 &op->file, &op->file2, 0)
					    : files_pass(state, file2, NULL, &op->file2, NULL, 0);
			if (!pass)
				return 0;
		} else if (config.detail != DETAIL_RAW) {
			if (op->file_ptr)
				op->file = handle_of(state, file, 0);
			if (op->file2_ptr)
				op->file2 = handle_of(state, file2, 0);
		}
	} else if (filters(1 << RULE_PATH) || filter.file_types) {
		/* One on a descriptor may have its file when it is carried out. */
		if (nothing_passes() && !names_file(desc) && desc->fd == NO_ARG)
			return 0;
		if (filter.known_types)
			op->left |= LEFT_BY_TYPE;
		if (filters(1 << RULE_PATH) && !passes(RULE_PATH, 0))
			op->left |= LEFT_BY_PATH;
	}
	op->pid = task->tgid;
	op->tid = task->pid;
	op->size = NO_SIZE;
	if (desc->iov != NO_ARG) {
		if (config.detail != DETAIL_RAW)
			op->size = iov_bytes(op->args[desc->iov & 7], op->args[desc->iovcnt & 7],
					     is_compat(task));
	} else if (desc->size != NO_ARG) {
		op->size = op->args[desc->size & 7];
		op->sized = 1;
	}
	return 1;
}

/* Whether an operation may have strings that are to be read. */
static __always_inline bool op_has_names(struct operation *op)
{
	const volatile struct call_desc *desc = op_desc(op->number);
	return config.detail != DETAIL_RAW &&
	       (desc->string1 != NO_ARG || desc->string2 != NO_ARG || desc->how != NO_ARG);
}

enum { OP_NOT_KEPT, OP_KEPT, OP_IN_THE_WAY };

/* Keeps the present task's operation from now on. OP_IN_THE_WAY: another one is known
 * by its key, which ended without a trace and left its address to this one. */
__noinline int op_keep(void)
{
	struct task_struct *task = current_task();
	struct op_beginning *begins = beginning_of(task);
	if (!begins)
		return OP_NOT_KEPT;
	struct op_key *key = &begins->key;
	struct operation *op = &begins->op;
	/* Here, so that what was done above does not count as the operation's time. */
	op->ts_ns = bpf_ktime_get_ns();
	if (likely(!bpf_map_update_elem(&operations, key, op, BPF_NOEXIST)))
		return OP_KEPT;
	if (bpf_map_lookup_elem(&operations, key))
		return OP_IN_THE_WAY;
	struct call_record *call = &op->call;
	__builtin_memset(call, 0, sizeof(*call));
	call->flags = CALL_PENDING;
	call->syscall = op_desc(op->number)->syscall;
	call->ts_ns = op->ts_ns;
	call->pid = op->pid;
	call->tid = op->tid;
	call->file = op->file;
	lose(call, op_desc(op->number)->flags);
	return OP_NOT_KEPT;
}

/* Keeps it, and gives up what is in its way. Returns whether it is kept. */
static __always_inline bool op_keep_anyway(struct op_key *key)
{
	int kept = op_keep();
	if (unlikely(kept == OP_IN_THE_WAY)) {
		struct operation *before = bpf_map_lookup_elem(&operations, key);
		if (before)
			op_give_up(key, before, OP_COMPLETION_UNSEEN);
		kept = op_keep();
	}
	return kept == OP_KEPT;
}

struct bpf_map;

static long op_pending_step(struct bpf_map *map, const void *key, void *value, void *context)
{
	struct op_key at = *(const struct op_key *)key;
	struct operation *op = value;
	op_give_up(&at, op, 0);
	return 0;
}

/* At the end: records the operations that have not ended. */
static __always_inline void op_pending(void)
{
	bpf_for_each_map_elem(&operations, op_pending_step, NULL, 0);
}

#endif
#endif
