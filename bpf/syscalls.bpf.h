/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The syscall layer: one record a call, made when the call returns.
 *
 * At entry only what will be gone or different at the return is kept: the time,
 * the file behind the descriptor (close drops it, dup2 replaces it) and its
 * position. Arguments are still in the registers at the return, and what they
 * point to has been read by the kernel by then, so it is in memory: reading it
 * at entry would fail on pages not yet there.
 */
#include "include/emit.h"
#include "include/call_filter.h"

/* Most calls that move data have descriptor, size and offset where read(2) and
 * pread(2) have them. */
static __always_inline __u64 fd_argument(struct pt_regs *regs, __u32 index)
{
	return likely(index == 0) ? argument(regs, 0) : argument(regs, index);
}

static __always_inline __u64 size_argument(struct pt_regs *regs, __u32 index)
{
	return likely(index == 2) ? argument(regs, 2) : argument(regs, index);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long id)
{
	if ((__u64)id >= MAX_NUMBERS)
		return 0;
	const volatile struct call_desc *desc = desc_of(id);
	struct task_struct *task = bpf_get_current_task_btf();
	if (unlikely(is_compat(task))) {
		if (bpf_task_storage_get(&tasks, task, NULL, 0))
			COUNT(compat);
		return 0;
	}
	if (!desc->selected)
		return 0;
	struct task_state *state = bpf_task_storage_get(&tasks, task, NULL, 0);
	if (!state || unlikely(state->flags & (TASK_WAITS_FOR_EXEC | TASK_LEFT)))
		return 0;
	/* One call in COST_SAMPLE is timed: what the programs themselves take. */
	__u64 began = state->calls++ & (COST_SAMPLE - 1) ? 0 : bpf_ktime_get_ns();
	state->number = id;
	state->file = 0;
	state->call_flags = 0;
	if (desc->fd != NO_ARG) {
		__s32 fd = fd_argument(regs, desc->fd);
		struct file *file = file_of_fd(task, fd);
		state->file_ptr = (__u64)file;
		if (file) {
			__u32 mode = file->f_inode->i_mode;
			bool storage = type_passes(file->f_inode, mode);
			struct file *file2 = NULL;
			if (desc->fd2 != NO_ARG) {
				file2 = file_of_fd(task, argument(regs, desc->fd2));
				state->file2 = 0;
				if (file2) {
					struct inode *inode2 = file2->f_inode;
					storage |= type_passes(inode2, inode2->i_mode);
				}
			}
			if (!storage ||
			    (filters(1 << RULE_PATH) && !files_pass(state, file, file2))) {
				state->enter_ns = 0;
				return 0;
			}
			if (config.detail != DETAIL_RAW && !filters(1 << RULE_PATH)) {
				if (file2)
					state->file2 = handle_of(state, file2, 0);
				state->file = handle_of(state, file, 0);
			}
			bool moves =
				desc->flags & (DESC_POSITION | DESC_WRITES) || desc->iov != NO_ARG;
			if (moves && is_seekable(mode)) {
				state->entry_pos = file->f_pos;
				state->call_flags = STASH_SEEKABLE;
				if (file->f_flags & O_APPEND)
					state->call_flags |= STASH_APPEND;
				if (position_is_shared(task, file))
					state->call_flags |= STASH_SHARED;
			}
		} else {
			if (nothing_passes()) {
				state->enter_ns = 0;
				return 0;
			}
			state->file2 = 0;
		}
	} else if (nothing_passes() && !names_file(desc)) {
		state->enter_ns = 0;
		return 0;
	}
	/* Last, so that what is done above does not count as the call's time. */
	__u64 now = bpf_ktime_get_ns();
	state->enter_ns = now;
	state->timed_ns = began ? now - began : 0;
	return 0;
}

struct iov_sum {
	__u64 address;
	__u32 left;
	__u32 failed;
	__u64 sum;
};

enum { IOV_CHUNK = 8 };

static long iov_step(__u64 index, struct iov_sum *s)
{
	/* struct iovec: base and length. */
	__u64 iov[2 * IOV_CHUNK];
	__u32 n = s->left < IOV_CHUNK ? s->left : IOV_CHUNK;
	if (!n)
		return 1;
	__builtin_memset(iov, 0, sizeof(iov));
	if (bpf_probe_read_user(iov, n * 16, (void *)s->address)) {
		s->failed = 1;
		return 1;
	}
#pragma unroll
	for (int i = 0; i < IOV_CHUNK; i++)
		s->sum += iov[2 * i + 1];
	s->address += 16 * n;
	s->left -= n;
	return 0;
}

/* Bytes that a vector asks for; NO_SIZE when it can't be read. */
__noinline __u64 iov_bytes(__u64 address, __u64 count)
{
	struct iov_sum s = { .address = address, .left = count };
	if (count > IOV_MAX)
		return NO_SIZE;
	bpf_loop(IOV_MAX / IOV_CHUNK, iov_step, &s, 0);
	return s.failed ? NO_SIZE : s.sum;
}

/* A position that the program passed by pointer, as it was before the call
 * moved it. */
static __always_inline __s64 offset_by_pointer(__u64 address, __s64 ret)
{
	__s64 after;
	if (bpf_probe_read_user(&after, sizeof(after), (void *)address))
		return NO_OFFSET;
	return ret > 0 ? after - ret : after;
}

/* Where I/O at the descriptor's own position began, seen after it. */
static __always_inline __s64 offset_at_position(struct file *file, __s64 ret)
{
	if (!is_seekable(file->f_inode->i_mode))
		return NO_OFFSET;
	return ret > 0 ? file->f_pos - ret : file->f_pos;
}

/* The directory that a relative path starts from. */
static __always_inline __u32 base_directory(struct task_state *state, struct task_struct *task,
					    __s32 dirfd, __u64 now)
{
	if (dirfd == AT_FDCWD)
		return handle_of_cwd(state, task, now);
	struct file *file = file_of_fd(task, dirfd);
	return file ? handle_of(state, file, now) : 0;
}

/* Appends the string at `address` to the record at `at`; returns its length,
 * -1 when it can't be read. */
static __always_inline long append_string(struct scratch *scratch, __u32 at, __u64 address)
{
	if (!address)
		return 0;
	long n = bpf_probe_read_user_str(scratch->data + (at & (SCRATCH_BYTES / 2 - 1)), MAX_PATH,
					 (void *)address);
	return n > 0 ? n - 1 : -1;
}

/* struct stat on the 64-bit ABIs: st_dev and st_ino come first. struct statx:
 * include/uapi/linux/stat.h. */
struct stat_identity {
	__u64 dev;
	__u64 ino;
};
enum { STATX_INO_AT = 0x20, STATX_DEV_AT = 0x88 };

static __noinline bool wide_call(struct task_struct *task, struct task_state *state,
				 struct pt_regs *regs, struct call_record *call)
{
	const volatile struct call_desc *desc = desc_of(state->number);
	struct scratch *scratch = scratch_get();
	if (!scratch) {
		COUNT(scratch_busy);
		return false;
	}
	struct wide_call_record *record = (void *)scratch->data;
	__builtin_memset(record, 0, sizeof(*record));
	call->kind = RECORD_WIDE_CALL;
	record->fd2 = -1;
	record->offset2 = NO_OFFSET;
	bool full = config.detail == DETAIL_FULL && !(call->flags & CALL_PENDING);
	bool user_memory = config.detail != DETAIL_RAW && !(call->flags & CALL_PENDING);
	if (config.detail != DETAIL_FULL)
		call->flags |= CALL_NO_STRINGS;
	__u64 now = call->ts_ns + call->dur_ns;
	__u32 at = sizeof(*record);

	if (desc->extra[0] != NO_ARG)
		record->extra[0] = argument(regs, desc->extra[0]);
	if (desc->extra[1] != NO_ARG)
		record->extra[1] = argument(regs, desc->extra[1]);
	if (desc->extra[2] != NO_ARG)
		record->extra[2] = argument(regs, desc->extra[2]);
	if (call->flags & CALL_POSITION_RACED)
		record->extra[0] = state->entry_pos;
	if (desc->how != NO_ARG && user_memory) {
		/* struct open_how: flags, mode, resolve. */
		if (!bpf_probe_read_user(record->extra, 24, (void *)argument(regs, desc->how)))
			call->flags |= CALL_HAS_HOW;
	}

	if (desc->fd2 != NO_ARG) {
		record->fd2 = argument(regs, desc->fd2);
		record->file2 = state->file2;
	}
	if (desc->offset_ptr != NO_ARG) {
		__u64 address = argument(regs, desc->offset_ptr);
		if (address) {
			if (user_memory)
				call->offset = offset_by_pointer(address, call->ret);
		} else {
			struct file *file = file_of_fd(task, call->fd);
			if (file && (__u64)file == state->file_ptr)
				call->offset = offset_at_position(file, call->ret);
		}
	}
	if (desc->fd2 != NO_ARG) {
		__u64 address = desc->offset_ptr2 != NO_ARG ? argument(regs, desc->offset_ptr2) : 0;
		if (address) {
			if (user_memory)
				record->offset2 = offset_by_pointer(address, call->ret);
		} else {
			struct file *file = file_of_fd(task, record->fd2);
			if (file)
				record->offset2 = offset_at_position(file, call->ret);
		}
	}

	if (desc->string1 != NO_ARG) {
		record->dirfd1 = desc->dirfd1 != NO_ARG ? argument(regs, desc->dirfd1) : AT_FDCWD;
		long n = full ? append_string(scratch, at, argument(regs, desc->string1)) : -1;
		if (n < 0) {
			call->flags |= CALL_STRING1_PARTIAL;
		} else {
			if (desc->path1 && scratch->data[at] != '/')
				record->dir1 = base_directory(state, task, record->dirfd1, now);
			else if (n == 0 && desc->path1)
				record->dir1 = base_directory(state, task, record->dirfd1, now);
			n &= MAX_PATH - 1;
			record->string1_len = n;
			at += n;
		}
	}
	if (desc->string2 != NO_ARG) {
		record->dirfd2 = desc->dirfd2 != NO_ARG ? argument(regs, desc->dirfd2) : AT_FDCWD;
		at &= SCRATCH_BYTES / 2 - 1;
		long n = full ? append_string(scratch, at, argument(regs, desc->string2)) : -1;
		if (n < 0) {
			call->flags |= CALL_STRING2_PARTIAL;
		} else {
			if (desc->path2 && scratch->data[at] != '/')
				record->dir2 = base_directory(state, task, record->dirfd2, now);
			n &= MAX_PATH - 1;
			record->string2_len = n;
			at += n;
		}
	}
	if (user_memory && call->ret == 0) {
		if (desc->stat != NO_ARG) {
			struct stat_identity id;
			if (!bpf_probe_read_user(&id, sizeof(id),
						 (void *)argument(regs, desc->stat))) {
				record->stat_dev = id.dev;
				record->stat_ino = id.ino;
				call->flags |= CALL_HAS_STAT;
			}
		} else if (desc->statx != NO_ARG) {
			__u64 address = argument(regs, desc->statx);
			__u32 dev[2] = {};
			__u64 ino = 0;
			if (!bpf_probe_read_user(&ino, 8, (void *)address + STATX_INO_AT) &&
			    !bpf_probe_read_user(dev, 8, (void *)address + STATX_DEV_AT)) {
				/* As glibc's makedev. */
				record->stat_dev = (dev[1] & 0xff) | ((dev[0] & 0xfff) << 8) |
						   ((__u64)(dev[1] & ~0xff) << 12);
				record->stat_ino = ino;
				call->flags |= CALL_HAS_STAT;
			}
		}
	}
	record->call = *call;
	at &= SCRATCH_BYTES - 1;
	bool sent = wide_output(scratch->data, at);
	scratch_put(scratch);
	return sent;
}

/* Makes the record of the call that `state` holds. */
static __always_inline void complete(struct task_struct *task, struct task_state *state,
				     struct pt_regs *regs, __s64 ret, __u64 now, bool pending)
{
	const volatile struct call_desc *desc = desc_of(state->number);
	__u32 flags = desc->flags;
	struct call_record call;
	call.kind = RECORD_CALL;
	call.flags = pending ? CALL_PENDING : 0;
	call.syscall = desc->syscall;
	call.fd = -1;
	call.ts_ns = state->enter_ns;
	call.dur_ns = now - state->enter_ns;
	call.pid = task->tgid;
	call.tid = task->pid;
	call.ret = ret;
	call.file = state->file;
	call.aux = 0;
	call.offset = NO_OFFSET;
	call.size = NO_SIZE;
	state->enter_ns = 0;

	bool wide = flags & DESC_WIDE;
	if (desc->fd != NO_ARG)
		call.fd = fd_argument(regs, desc->fd);
	else if (desc->ring != NO_ARG)
		call.fd = argument(regs, desc->ring);
	if (desc->size != NO_ARG)
		call.size = size_argument(regs, desc->size);
	if (desc->aux != NO_ARG)
		call.aux = argument(regs, desc->aux);
	bool at_position = flags & DESC_POSITION;
	if (desc->offset != NO_ARG) {
		call.offset = argument(regs, desc->offset);
		/* preadv2 and pwritev2: -1 stands for the position. */
		if (call.offset == -1 && desc->iov != NO_ARG)
			at_position = true;
	}
	if (desc->iov != NO_ARG && config.detail != DETAIL_RAW && !pending)
		call.size = iov_bytes(argument(regs, desc->iov), argument(regs, desc->iovcnt));
	if (state->call_flags & STASH_SEEKABLE) {
		struct file *file = file_of_fd(task, call.fd);
		bool same = file && (__u64)file == state->file_ptr;
		if (at_position) {
			call.offset = state->entry_pos;
			if (same && !pending) {
				call.offset = ret > 0 ? file->f_pos - ret : file->f_pos;
				if (state->call_flags & STASH_SHARED) {
					call.flags |= CALL_SHARED_POSITION;
					if (desc->aux == NO_ARG)
						/* Not `file`: arithmetic on a kernel
						 * pointer is refused. */
						call.aux = *(volatile __u64 *)&state->file_ptr >> 6;
					if (call.offset != state->entry_pos) {
						call.flags |= CALL_POSITION_RACED;
						wide = true;
					}
				}
			}
		} else if (same && state->call_flags & STASH_APPEND && flags & DESC_WRITES &&
			   ret > 0) {
			/* pwrite(2): Linux appends whatever the offset. */
			call.offset = file->f_inode->i_size - ret;
		}
	} else if (at_position) {
		call.offset = NO_OFFSET;
	}
	if (flags & DESC_RET_FD && ret >= 0 && config.detail != DETAIL_RAW && !pending) {
		struct file *file = file_of_fd(task, ret);
		if (file)
			call.file = handle_of(state, file, now);
	}
	if (flags & DESC_CHDIR && ret == 0 && config.detail != DETAIL_RAW && !pending)
		call.file = handle_of_cwd(state, task, now);

	bool sent;
	if (wide) {
		sent = wide_call(task, state, regs, &call);
		if (sent)
			COUNT(wide_calls);
	} else {
		sent = slot_output(&call);
	}
	if (unlikely(!sent))
		lose(&call, flags);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long ret)
{
	__u32 number = syscall_number(regs);
	if (number >= MAX_NUMBERS)
		return 0;
	const volatile struct call_desc *desc = desc_of(number);
	if (unlikely(desc->flags & DESC_RENAMES) && ret == 0)
		__sync_fetch_and_add(&rename_epoch, 1);
	if (filters(1 << RULE_UID) && unlikely(desc->credentials) && ret == 0)
		reconsider(bpf_get_current_task_btf());
	if (!desc->selected)
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = bpf_task_storage_get(&tasks, task, NULL, 0);
	if (!state || !state->enter_ns || state->number != number)
		return 0;
	if (filter.errors_only && !is_error(desc->flags, ret)) {
		state->enter_ns = 0;
		return 0;
	}
	__u64 now = bpf_ktime_get_ns();
	if (!call_passes(task, state, regs, ret, now, false)) {
		state->enter_ns = 0;
		return 0;
	}
	complete(task, state, regs, ret, now, false);
	if (unlikely(state->timed_ns)) {
		struct cpu_stats *counters = cpu_stats();
		if (counters) {
			__u64 spent = state->timed_ns + (bpf_ktime_get_ns() - now);
			__sync_fetch_and_add(&counters->cost_ns, spent);
			__sync_fetch_and_add(&counters->cost_calls, 1);
		}
	}
	return 0;
}
