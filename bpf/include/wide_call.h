/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records of calls with strings, a second file or more arguments than a slot holds.
 *
 * The parts of a record are functions of their own, and where the next bytes go lies in map
 * memory (scratch->walk.at): the verifier follows each once, not once for every way through
 * those before.
 */
#ifndef FATHOM_WIDE_CALL_H
#define FATHOM_WIDE_CALL_H

#include "call_filter.h"
#include "streams.h"
#if HAVE_LAYERS
#include "cache_state.h"
#endif

/* A position that the program passed by pointer, as it was before the call
 * moved it. */
static __always_inline __s64 offset_by_pointer(__u64 address, __s64 ret)
{
	__s64 after;
	if (bpf_probe_read_user(&after, sizeof(after), (void *)address))
		return NO_OFFSET;
	return ret > 0 ? after - ret : after;
}

/* Where I/O at the descriptor's own position began, seen after it; `entry_pos` is the position
 * before. When others may move it and it is another, that is not known. */
static __always_inline __s64 offset_at_position(struct task_struct *task, struct file *file,
						__s64 ret, __s64 entry_pos,
						struct call_record *call)
{
	if (!is_seekable(file_mode(file)))
		return NO_OFFSET;
	__s64 position = READ(file, f_pos);
	if (ret > 0)
		position -= ret;
	if (position == entry_pos || !position_is_shared(task, file))
		return position;
	call->flags |= CALL_POSITION_RACED;
	return NO_OFFSET;
}

/* The handle of the directory that a path of the present task starts from: for an
 * `absolute` one its root, 0 when that is the one of its mount namespace. */
VERIFIED_ONCE int start_of_path(struct task_state *state, __s32 dirfd, bool absolute, __u64 now)
{
	struct task_struct *task = current_task();
	if (!state)
		return 0;
	if (absolute)
		return handle_of_root(state, task, now);
	if (dirfd == AT_FDCWD)
		return handle_of_directory(state, task, false, now);
	struct file *file = file_of_fd(task, dirfd);
	return file ? handle_of(state, file, now) : 0;
}

/* Appends the string at `address` to the record at `at`; returns its length, a
 * negative number when it can't be read, MAX_PATH when it is longer than what was
 * read, which are MAX_PATH - 1 bytes then. An empty one has no length in older
 * kernels, and counts its end in newer ones. */
static __always_inline long append_string(struct scratch *scratch, __u32 at, __u64 address)
{
	long n = bpf_probe_read_user_str(scratch->data + (at & (SCRATCH_BYTES / 2 - 1)), MAX_PATH,
					 (void *)address);
	if (unlikely(n == MAX_PATH)) {
		char last = 1;
		bpf_probe_read_user(&last, 1, (void *)(address + MAX_PATH - 1));
		if (last)
			return n;
	}
	/* Right here: older verifiers forget what was compared elsewhere. */
	return n - (n > 0);
}

/* struct stat begins with st_dev and st_ino; struct statx: include/uapi/linux/stat.h. */
enum { STATX_INO_AT = 0x20, STATX_DEV_AT = 0x88 };

/* Bytes of the struct that a command of fcntl takes, 0 when it takes none: struct
 * flock, struct f_owner_ex, a hint of 64 bits. */
static __always_inline __u32 bytes_of_command(__u32 command)
{
	if ((command >= F_GETLK && command <= F_SETLKW) ||
	    (command >= F_OFD_GETLK && command <= F_OFD_SETLKW))
		return 32;
	if (command == F_SETOWN_EX || command == F_GETOWN_EX ||
	    (command >= F_GET_RW_HINT && command <= F_SET_FILE_RW_HINT))
		return 8;
	return 0;
}

/* The arguments of a call, in map memory: one of them is then taken without a branch for
 * each place that it may be in, which the verifier would follow every time. */
static __always_inline void keep_arguments(struct task_state *state, struct pt_regs *regs,
					   bool compat)
{
#pragma unroll
	for (int i = 0; i < 6; i++)
		state->args[i] = argument(regs, i, compat);
}

static __always_inline __u64 kept_argument(struct task_state *state, __u32 index)
{
	return state->args[index & 7];
}

/* A number of 64 bits, which 32-bit programs pass in two registers; one without
 * an upper half is signed. */
static __always_inline __u64 kept_long_argument(struct task_state *state, __u32 low, __u32 high,
						bool compat)
{
	__u64 value = kept_argument(state, low);
	if (unlikely(compat))
		value = high >= SIGNED_ARG ? (__u64)(__s64)(__s32)value
					   : value | kept_argument(state, high) << 32;
	return value;
}

/* As glibc's makedev. */
static __always_inline __u64 device_number(__u32 major, __u32 minor)
{
	return (minor & 0xff) | ((major & 0xfff) << 8) | ((__u64)(minor & ~0xff) << 12);
}

/* How many of `most` bytes of the struct that an argument points to count. */
static __always_inline __u32 structure_bytes(struct task_state *state,
					     const volatile struct call_desc *desc, __u32 most)
{
	__u64 given = kept_argument(state, desc->structure_len);
	if (desc->structure_room) {
		__u32 length;
		if (bpf_probe_read_user(&length, sizeof(length), (void *)given))
			return 0;
		given = length < state->room ? length : state->room;
	} else {
		given = (__s32)given < 0 ? 0 : (__u32)given * (__u64)desc->structure_unit;
	}
	return given < most ? given : most;
}

/* Reads the struct that an argument points to, and takes device and inode from one
 * of stat; appends it if it is to be kept (`full`) and returns where the next bytes
 * go. Not for 32-bit programs, whose structs are others. */
static __always_inline __u32 append_struct(struct task_state *state, struct scratch *scratch,
					   struct wide_call_record *record,
					   const volatile struct call_desc *desc,
					   struct call_record *call, __u32 at, bool full)
{
	__u64 address;
	__u32 bytes;
	if (desc->lock != NO_ARG) {
		bytes = bytes_of_command(call->aux);
		address = kept_argument(state, desc->lock);
	} else {
		bytes = desc->structure_bytes;
		address = kept_argument(state, desc->structure);
		if (desc->structure_out &&
		    (call->ret < 0 || (desc->structure_out > 1 && !call->ret)))
			bytes = 0;
		if (config.network && desc->structure_len != NO_ARG)
			bytes = structure_bytes(state, desc, bytes);
	}
	if (!address)
		record->arg_flags |= ARG_STRUCT_NULL;
	/* Behind two paths, or a path and a name of that length. */
	if (!address || !bytes || at >= SCRATCH_BYTES / 2)
		return at;
	at &= SCRATCH_BYTES / 2 - 1;
	__u8 *data = scratch->data + at;
	/* Right before the call: older verifiers forget bounds. */
	barrier_var(bytes);
	bytes &= 255;
	if (bpf_probe_read_user(data, bytes, (void *)address))
		return at;
	if (desc->stat != NO_ARG) {
		record->stat_dev = *(__u64 *)data;
		record->stat_ino = *(__u64 *)(data + 8);
		call->flags |= CALL_HAS_STAT;
	} else if (desc->statx != NO_ARG) {
		record->stat_dev = device_number(*(__u32 *)(data + STATX_DEV_AT),
						 *(__u32 *)(data + STATX_DEV_AT + 4));
		record->stat_ino = *(__u64 *)(data + STATX_INO_AT);
		call->flags |= CALL_HAS_STAT;
	}
	if (!full)
		return at;
	record->struct_len += bytes;
	return at + bytes;
}

/* Appends the struct that was read at the entry. */
static __always_inline __u32 append_early(struct task_state *state, struct scratch *scratch,
					  struct wide_call_record *record,
					  const volatile struct call_desc *desc, __u32 at)
{
	if (state->early_stage == EARLY_NULL)
		record->arg_flags |= ARG_EARLY_NULL;
	if (state->early_stage != EARLY_READ || at >= SCRATCH_BYTES / 2)
		return at;
	at &= SCRATCH_BYTES / 2 - 1;
	__builtin_memcpy(scratch->data + at, state->early, EARLY_BYTES);
	record->arg_flags |= ARG_EARLY;
	record->struct_len = desc->early_bytes;
	return at + desc->early_bytes;
}

#if HAVE_LOOPS
struct message_sum {
	__u64 address;
	__u64 count;
	__u64 compat;
	__u64 sum;
};

static long message_step(__u64 index, struct message_sum *s)
{
	/* struct mmsghdr: struct msghdr, and the bytes that were moved. */
	__u64 stride = s->compat ? 32 : 64, place = s->compat ? 28 : 56;
	__u32 bytes;
	if (index >= s->count)
		return 1;
	if (bpf_probe_read_user(&bytes, sizeof(bytes),
				(void *)s->address + index * stride + place)) {
		s->sum = NO_SIZE;
		return 1;
	}
	s->sum += bytes;
	return 0;
}

/* Bytes that sendmmsg or recvmmsg moved, which returned `count`; NO_SIZE when not known. */
__noinline __u64 messages_bytes(__u64 address, __u64 count, bool compat)
{
	enum { MOST_MESSAGES = 1024 };
	struct message_sum s = { .address = address, .count = count, .compat = compat };
	if (count > MOST_MESSAGES)
		return NO_SIZE;
	LOOP(MOST_MESSAGES, message_step, &s);
	return s.sum;
}
#else
static __always_inline __u64 messages_bytes(__u64 address, __u64 count, bool compat)
{
	return NO_SIZE;
}
#endif

/* Whether the descriptor before a path stands for the file: with AT_EMPTY_PATH,
 * which has another meaning among the flags of open, and an empty path, or a null
 * one. Some calls take a null one without that flag, but from a descriptor only. */
static __always_inline bool is_descriptor(struct task_state *state,
					  const volatile struct call_desc *desc,
					  struct wide_call_record *record)
{
	char first;
	if (!desc->path1 || desc->dirfd1 == NO_ARG || desc->flags & DESC_RET_FD)
		return false;
	__u64 address = kept_argument(state, desc->string1);
	/* Where it does not, the kernel finds no path at address 0. */
	if (!address && record->call.ret == -EFAULT)
		return false;
	if (!address && desc->null_path)
		return record->dirfd1 != AT_FDCWD;
	if (!(record->call.aux & AT_EMPTY_PATH))
		return false;
	return !address || (!bpf_probe_read_user(&first, 1, (void *)address) && !first);
}

/* Appends a text to the record at `at`; returns where the next bytes go. */
static __always_inline __u32 append_text(struct scratch *scratch, struct wide_call_record *record,
					 __u64 address, __u32 at)
{
	if (!address) {
		record->arg_flags |= ARG_STRING3_NULL;
		return at;
	}
	/* Behind a path and a text of that length. */
	if (at >= SCRATCH_BYTES / 2) {
		record->arg_flags |= ARG_STRING3_PARTIAL;
		return at;
	}
	at &= SCRATCH_BYTES / 2 - 1;
	long n = bpf_probe_read_user_str(scratch->data + at, MAX_TEXT, (void *)address);
	if (n < 0 || n >= MAX_TEXT)
		record->arg_flags |= ARG_STRING3_PARTIAL;
	n -= n > 0;
	if (n <= 0)
		return at;
	n &= MAX_TEXT - 1;
	record->string3_len = n;
	return at + n;
}

/* The same for the value of an extended attribute that the call took or gave. */
static __always_inline __u32 append_value(struct task_state *state, struct scratch *scratch,
					  struct wide_call_record *record,
					  const volatile struct call_desc *desc,
					  struct call_record *call, __u32 at)
{
	__u64 address = kept_argument(state, desc->value);
	__u64 bytes = desc->flags & DESC_RET_BYTES ? (__u64)call->ret : call->size;
	/* Asked with size 0, getxattr tells the size only. */
	if (call->ret < 0 || !call->size || !address || at >= SCRATCH_BYTES / 2)
		return at;
	at &= SCRATCH_BYTES / 2 - 1;
	if (bytes >= MAX_TEXT) {
		record->arg_flags |= ARG_STRING3_PARTIAL;
		bytes = MAX_TEXT - 1;
	}
	/* Right before the call: older verifiers forget bounds. */
	barrier_var(bytes);
	bytes &= MAX_TEXT - 1;
	if (bpf_probe_read_user(scratch->data + at, bytes, (void *)address))
		return at;
	record->arg_flags |= ARG_VALUE;
	record->string3_len = bytes;
	return at + bytes;
}

/* Reads struct open_how: flags, mode, resolve. The kernel reads it when `bytes` is
 * what it may be. */
static __always_inline bool read_how(__u64 *how, __u64 address, __u64 bytes)
{
	enum { HOW_BYTES = 24, MOST_BYTES = 4096 };
	return bytes >= HOW_BYTES && bytes <= MOST_BYTES &&
	       !bpf_probe_read_user(how, HOW_BYTES, (void *)address);
}

/* Takes device and inode from struct statx. */
static __always_inline bool read_statx(struct wide_call_record *record, __u64 address)
{
	__u32 dev[2] = {};
	__u64 ino = 0;
	if (bpf_probe_read_user(&ino, 8, (void *)address + STATX_INO_AT) ||
	    bpf_probe_read_user(dev, 8, (void *)address + STATX_DEV_AT))
		return false;
	record->stat_dev = device_number(dev[0], dev[1]);
	record->stat_ino = ino;
	return true;
}

static __always_inline __u64 call_end(struct call_record *call)
{
	return call->ts_ns + call->dur_ns;
}

/* The record that is made in `scratch`, of the call that `state` holds. */
static __always_inline struct wide_call_record *wide_of(struct scratch *scratch)
{
	return (void *)scratch->data;
}

/* Numbers, and where I/O took place. */
static __always_inline void add_numbers(struct task_state *state, struct wide_call_record *record,
					const volatile struct call_desc *desc, bool pending)
{
	bool compat = COMPAT_CALLS && state->call_flags & STASH_COMPAT;
	struct call_record *call = &record->call;
	bool user_memory = config.detail != DETAIL_RAW && !pending;
	if (desc->extra[0] != NO_ARG)
		record->extra[0] = kept_argument(state, desc->extra[0]);
	if (desc->extra[1] != NO_ARG)
		record->extra[1] = kept_argument(state, desc->extra[1]);
	if (desc->extra[2] != NO_ARG)
		record->extra[2] = kept_argument(state, desc->extra[2]);
	if (compat && desc->signed_extra) {
#pragma unroll
		for (int i = 0; i < MAX_EXTRA; i++)
			if (desc->signed_extra >> i & 1)
				record->extra[i] = (__s64)(__s32)record->extra[i];
	}
	if (call->flags & CALL_POSITION_RACED)
		record->extra[0] = state->entry_pos;
	if (state->call_flags & STASH_SEGMENTS) {
		record->extra[1] = kept_argument(state, desc->iovcnt);
		record->arg_flags |= ARG_SEGMENTS;
	}
	if (desc->how != NO_ARG && user_memory &&
	    read_how(record->extra, kept_argument(state, desc->how),
		     kept_argument(state, desc->size)))
		call->flags |= CALL_HAS_HOW;
	if (state->call_flags & STASH_BEFORE)
		record->op_flags = OP_STARTED_BEFORE_TRACE;
	if (desc->offset_ptr != NO_ARG) {
		__u64 address = kept_argument(state, desc->offset_ptr);
		if (address) {
			if (user_memory)
				call->offset = offset_by_pointer(address, call->ret);
		} else {
			record->arg_flags |= ARG_OFFSET_NULL;
			struct file *file = file_of_fd(current_task(), call->fd);
			if (config.streams && state->streams[0].offset != NO_OFFSET)
				call->offset = state->streams[0].offset;
			else if (file && (__u64)file == state->file_ptr)
				call->offset = offset_at_position(current_task(), file, call->ret,
								  state->entry_pos, call);
		}
	}
	if (state->call_flags & STASH_CREATED)
		record->arg_flags |= ARG_CREATED;
	if (config.network && desc->messages != NO_ARG)
		record->extra[2] = user_memory && call->ret >= 0
					   ? messages_bytes(kept_argument(state, desc->messages),
							    call->ret, compat)
					   : NO_SIZE;
	if (config.streams && desc->stream2 && state->streams[1].offset != NO_OFFSET) {
		record->offset2 = state->streams[1].offset;
		record->arg_flags |= ARG_STREAM2;
	}
	if (desc->fd2 != NO_ARG) {
		record->fd2 = kept_argument(state, desc->fd2);
		record->file2 = state->file2;
		__u64 address =
			desc->offset_ptr2 != NO_ARG ? kept_argument(state, desc->offset_ptr2) : 0;
		if (address) {
			if (user_memory)
				record->offset2 = offset_by_pointer(address, call->ret);
		} else {
			if (desc->offset_ptr2 != NO_ARG)
				record->arg_flags |= ARG_OFFSET2_NULL;
			struct file *file = file_of_fd(current_task(), record->fd2);
			if (file && !(record->arg_flags & ARG_STREAM2))
				record->offset2 = offset_at_position(
					current_task(), file, call->ret, state->entry_pos2, call);
		}
	}
}

/* The first text, a path as a rule. */
VERIFIED_ONCE_DEEP int add_string1(struct task_state *state, struct scratch *scratch)
{
	if (!state || !scratch)
		return 0;
	const volatile struct call_desc *desc = desc_of_state(state);
	struct wide_call_record *record = wide_of(scratch);
	struct call_record *call = &record->call;
	bool full = config.detail == DETAIL_FULL;
	__u32 at = scratch->walk.at & (SCRATCH_BYTES / 2 - 1);
	__u64 address = kept_argument(state, desc->string1);
	record->dirfd1 = desc->dirfd1 != NO_ARG ? kept_argument(state, desc->dirfd1) : AT_FDCWD;
	if (full && desc->dirfd1 != NO_ARG)
		record->at1 = start_of_path(state, record->dirfd1, false, call_end(call));
	long n = full && address ? append_string(scratch, at, address) : -1;
	/* Without strings the file behind a descriptor is still named. */
	if ((!address || config.detail == DETAIL_FDS) && config.detail != DETAIL_RAW &&
	    is_descriptor(state, desc, record))
		n = 0;
	if (!address)
		record->arg_flags |= ARG_STRING1_NULL;
	if (n < 0 || n >= MAX_PATH)
		call->flags |= CALL_STRING1_PARTIAL;
	if (n < 0)
		return 0;
	if (n >= MAX_PATH)
		n = MAX_PATH - 1;
	record->string1_len = n;
	scratch->walk.at = at + n;
	if (desc->path1) {
		bool in_root = call->flags & CALL_HAS_HOW && record->extra[2] & RESOLVE_IN_ROOT;
		bool absolute = n > 0 && scratch->data[at] == '/';
		if (absolute && !in_root)
			record->dir1 = record->root;
		else if (record->at1)
			record->dir1 = record->at1;
		else
			record->dir1 = start_of_path(state, record->dirfd1, false, call_end(call));
		if (in_root)
			record->root = record->dir1;
	}
	return 0;
}

/* The second one. */
VERIFIED_ONCE_DEEP int add_string2(struct task_state *state, struct scratch *scratch)
{
	if (!state || !scratch)
		return 0;
	const volatile struct call_desc *desc = desc_of_state(state);
	struct wide_call_record *record = wide_of(scratch);
	struct call_record *call = &record->call;
	bool full = config.detail == DETAIL_FULL;
	__u32 at = scratch->walk.at & (SCRATCH_BYTES / 2 - 1);
	__u64 address = kept_argument(state, desc->string2);
	record->dirfd2 = desc->dirfd2 != NO_ARG ? kept_argument(state, desc->dirfd2) : AT_FDCWD;
	if (full && desc->dirfd2 != NO_ARG)
		record->at2 = start_of_path(state, record->dirfd2, false, call_end(call));
	long n = full && address ? append_string(scratch, at, address) : -1;
	if (!address)
		record->arg_flags |= ARG_STRING2_NULL;
	if (n < 0 || n >= MAX_PATH)
		call->flags |= CALL_STRING2_PARTIAL;
	if (n < 0)
		return 0;
	if (n >= MAX_PATH)
		n = MAX_PATH - 1;
	record->string2_len = n;
	scratch->walk.at = at + n;
	if (desc->path2) {
		if (n > 0 && scratch->data[at] == '/')
			record->dir2 = record->root;
		else if (record->at2)
			record->dir2 = record->at2;
		else
			record->dir2 = start_of_path(state, record->dirfd2, false, call_end(call));
	}
	return 0;
}

/* A further text, and what an argument points to. */
VERIFIED_ONCE int add_structures(struct task_state *state, struct scratch *scratch)
{
	if (!state || !scratch)
		return 0;
	bool compat = COMPAT_CALLS && state->call_flags & STASH_COMPAT;
	const volatile struct call_desc *desc = desc_of_state(state);
	struct wide_call_record *record = wide_of(scratch);
	struct call_record *call = &record->call;
	bool full = config.detail == DETAIL_FULL;
	if (full && desc->string3 != NO_ARG)
		scratch->walk.at = append_text(scratch, record, kept_argument(state, desc->string3),
					       scratch->walk.at);
	if (config.content == CONTENT_MODE_PLAIN && full && desc->value != NO_ARG)
		scratch->walk.at =
			append_value(state, scratch, record, desc, call, scratch->walk.at);
	if (config.network && full)
		scratch->walk.at = append_early(state, scratch, record, desc, scratch->walk.at);
	if ((!compat || (config.network && desc->structure_any_abi)) &&
	    (desc->structure != NO_ARG || desc->lock != NO_ARG)) {
		scratch->walk.at =
			append_struct(state, scratch, record, desc, call, scratch->walk.at, full);
	} else if (compat && call->ret == 0) {
		if (desc->stat != NO_ARG) {
			__u64 address = kept_argument(state, desc->stat);
			__u64 dev = 0, ino = 0;
			if (!bpf_probe_read_user(&dev, 8, (void *)address) &&
			    !bpf_probe_read_user(&ino, 8, (void *)address + desc->stat_ino)) {
				record->stat_dev = dev;
				record->stat_ino = ino;
				call->flags |= CALL_HAS_STAT;
			}
		} else if (desc->statx != NO_ARG) {
			if (read_statx(record, kept_argument(state, desc->statx)))
				call->flags |= CALL_HAS_STAT;
		}
	}
	return 0;
}

/* Sends the call that `state` holds, with its arguments and all that has no room in its
 * record, made in `scratch`; whether it was sent. */
static __always_inline bool send_wide(struct task_state *state, struct scratch *scratch,
				      bool pending)
{
	const volatile struct call_desc *desc = desc_of_state(state);
	struct wide_call_record *record = wide_of(scratch);
	__builtin_memset(record, 0, sizeof(*record));
	/* In map memory from here on: of what lies on the stack the verifier
	 * would follow every combination. */
	record->call = state->call;
	struct call_record *call = &record->call;
	call->kind = RECORD_WIDE_CALL;
	record->fd2 = -1;
	record->offset2 = NO_OFFSET;
	if (config.detail != DETAIL_FULL)
		call->flags |= CALL_NO_STRINGS;
#if HAVE_LAYERS
	/* 0 where the layer is not recorded. */
	if (!pending) {
		cache_settle(&state->layers);
		record->cache = state->layers.cache;
	}
#endif
	scratch->walk.at = sizeof(*record);
	add_numbers(state, record, desc, pending);
	/* A call that has not returned may not have read its strings. */
	if (pending) {
		if (desc->string1 != NO_ARG) {
			call->flags |= CALL_STRING1_PARTIAL;
			if (!kept_argument(state, desc->string1))
				record->arg_flags |= ARG_STRING1_NULL;
			record->dirfd1 = desc->dirfd1 != NO_ARG ? kept_argument(state, desc->dirfd1)
								: AT_FDCWD;
		}
		if (desc->string2 != NO_ARG) {
			call->flags |= CALL_STRING2_PARTIAL;
			if (!kept_argument(state, desc->string2))
				record->arg_flags |= ARG_STRING2_NULL;
			record->dirfd2 = desc->dirfd2 != NO_ARG ? kept_argument(state, desc->dirfd2)
								: AT_FDCWD;
		}
	} else {
		if ((desc->path1 || desc->path2) && config.detail != DETAIL_RAW)
			record->root = handle_of_root(state, current_task(), call_end(call));
		if (desc->string1 != NO_ARG)
			add_string1(state, scratch);
		if (desc->string2 != NO_ARG)
			add_string2(state, scratch);
		if (config.detail != DETAIL_RAW &&
		    (desc->string3 != NO_ARG || desc->value != NO_ARG ||
		     desc->structure != NO_ARG || desc->lock != NO_ARG || config.network ||
		     state->call_flags & STASH_COMPAT))
			add_structures(state, scratch);
		if (config.network && desc->flow && config.detail != DETAIL_RAW)
			add_flow(state, scratch);
	}
	if (desc->string3 != NO_ARG && (pending || config.detail != DETAIL_FULL))
		record->arg_flags |= ARG_STRING3_PARTIAL;
	return wide_output(scratch->data, scratch->walk.at & (SCRATCH_BYTES - 1));
}

VERIFIED_ONCE int wide_record(struct task_state *state, struct scratch *scratch)
{
	return state && scratch ? send_wide(state, scratch, false) : false;
}

VERIFIED_ONCE int wide_record_pending(struct task_state *state, struct scratch *scratch)
{
	return state && scratch ? send_wide(state, scratch, true) : false;
}

static __always_inline bool wide_call(struct task_state *state, bool pending)
{
	struct scratch *scratch = scratch_get();
	if (!scratch) {
		COUNT(scratch_busy);
		return false;
	}
	bool sent = pending ? wide_record_pending(state, scratch) : wide_record(state, scratch);
	scratch_put(scratch);
	return sent;
}

#endif
