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
#include "include/perf_counters.h"
#include "include/wide_call.h"
#if HAVE_FAULTS
#include "include/mappings.h"
#endif
#if HAVE_CONTENT
#include "include/content.h"
#endif
#if HAVE_LAYERS
#include "include/cache_state.h"
#endif
#if HAVE_LIBRARY
#include "include/library_state.h"
#endif

/* Most calls that move data have their descriptor where read(2) has it. */
static __always_inline __u64 fd_argument(struct pt_regs *regs, __u32 index, bool compat)
{
	return likely(index == 0 && !compat) ? argument(regs, 0, false)
					     : argument(regs, index, compat);
}

/* Sends the record of the present task, for which there was no room before. */
__noinline int announce(void);

/* What the calls of AIO mean for its operations: aio.bpf.h. `watch`: of enum
 * call_watch. */
#if HAVE_OPERATIONS
int aio_harvest_all(void);
int aio_enter(__u32 watch, __u64 context, __u64 count, __u64 iocbs);
int aio_exit(__u32 watch, __s64 ret, __u64 count, __u64 array);
#else
static __always_inline int aio_harvest_all(void)
{
	return 0;
}

static __always_inline int aio_enter(__u32 watch, __u64 context, __u64 count, __u64 iocbs)
{
	return 0;
}

static __always_inline int aio_exit(__u32 watch, __s64 ret, __u64 count, __u64 array)
{
	return 0;
}
#endif

/* With these filters most calls are left out by what comes of them: the files of a
 * call are looked at when it turns out at its return to be recorded. */
static __always_inline bool judges_outcome(void)
{
	return filter.errors_only || filter.min_dur_ns;
}

/* Whether that can be done with this call: not when it gives its descriptor up, nor
 * when it may wait long and another thread could give it up meanwhile. */
static __always_inline bool is_noted_late(struct task_struct *task,
					  const volatile struct call_desc *desc)
{
	if (!judges_outcome() || desc->fd == NO_ARG || desc->releases)
		return false;
	return filter.errors_only || !descriptors_are_shared(task);
}

/* RWF_ flags of a write; calls without have none. */
static __always_inline __u32 write_flags(const volatile struct call_desc *desc,
					 struct pt_regs *regs, bool compat)
{
	return desc->iov != NO_ARG && desc->aux != NO_ARG ? argument(regs, desc->aux, compat) : 0;
}

/* The lowest offset at which I/O at the position of `file` that begins now may take place, or
 * a write that appends: the size only grows, but for truncate(). */
static __always_inline __s64 lowest_offset(struct file *file, struct inode *inode, bool appends)
{
	return appends ? READ(inode, i_size) : READ(file, f_pos);
}

/* Whether a call on `file` is recorded: its type and its path, or those of its second file. Gets
 * their handles, and its mode. */
static __always_inline bool find_files(struct task_struct *task, struct task_state *state,
				       const volatile struct call_desc *desc, struct pt_regs *regs,
				       bool compat, struct file *file, bool late, __u64 now,
				       __u32 *mode)
{
	struct inode *inode = READ(file, f_inode);
	bool by_path = filters(1 << RULE_PATH), names = config.detail != DETAIL_RAW && !by_path;
	if (names && likely(desc->fd2 == NO_ARG)) {
		/* As a rule the task has used the file before. */
		struct cached_file *cached = cache_slot(state, inode);
		if (likely(cached->type_passes) &&
		    is_cached(cached, READ(file, f_path.mnt), READ(file, f_path.dentry), inode)) {
			*mode = cached->mode;
			state->file = cached->handle;
			return true;
		}
	}
	*mode = READ(inode, i_mode);
	bool storage = type_passes(inode, *mode);
	bool any_type = config.network && desc->any_type && !filter.file_types;
	struct file *file2 = NULL;
	if (desc->fd2 != NO_ARG) {
		file2 = file_of_fd(task, argument(regs, desc->fd2, compat));
		state->file2 = 0;
		if (file2) {
			struct inode *inode2 = READ(file2, f_inode);
			storage |= type_passes(inode2, READ(inode2, i_mode));
		}
	}
	if (!(storage || any_type) ||
	    (by_path && !files_pass(state, file, file2, &state->file, &state->file2, now)))
		return false;
	if (names) {
		if (file2)
			state->file2 = handle_of(state, file2, now);
		struct cached_file *cached = cached_file(state, file, now, true);
		state->file = cached->handle;
		cached->type_passes = !file2 && storage;
	}
	if (!config.counters && !late && file2)
		state->entry_pos2 = READ(file2, f_pos);
	return true;
}

/* Keeps the files of a call that begins, and where they are; false when the filters
 * leave the call out. `late`: the call ended at `now`, or is about to, which is 0
 * otherwise. */
static __always_inline bool note_files(struct task_struct *task, struct task_state *state,
				       const volatile struct call_desc *desc, struct pt_regs *regs,
				       bool compat, bool late, __u64 now)
{
	if (desc->fd == NO_ARG)
		return !nothing_passes() || names_file(desc);
	struct file *file = file_of_fd(task, fd_argument(regs, desc->fd, compat));
	state->file_ptr = (__u64)file;
	if (!file) {
		state->file2 = 0;
		return !nothing_passes();
	}
	__u32 mode;
	if (!find_files(task, state, desc, regs, compat, file, late, now, &mode))
		return false;
	if (!config.counters && desc->moves && is_seekable(mode)) {
		bool appends = desc->flags & DESC_WRITES &&
			       write_appends(file, write_flags(desc, regs, compat));
		state->call_flags |= STASH_SEEKABLE | (appends ? STASH_APPEND : 0);
		/* Of a call that ended it would be the highest. One that fails does not
		 * move it. */
		if (!late || filter.errors_only)
			state->entry_pos = lowest_offset(file, READ(file, f_inode), appends);
		if (position_is_shared(task, file))
			state->call_flags |= STASH_SHARED;
	}
	return true;
}

/* The same for a call that has been entered before. */
static __noinline bool note_files_late(struct task_struct *task, struct task_state *state,
				       struct pt_regs *regs, __u64 now)
{
	bool compat = COMPAT_CALLS && state->call_flags & STASH_COMPAT;
	const volatile struct call_desc *desc = desc_of(state->number, compat);
	state->call_flags &= ~STASH_LATE;
	return note_files(task, state, desc, regs, compat, true, now);
}

/* Keeps what the call may overwrite in the memory of the program. */
static __noinline int note_early(struct task_state *state, struct pt_regs *regs)
{
	bool compat = COMPAT_CALLS && state->call_flags & STASH_COMPAT;
	const volatile struct call_desc *desc = desc_of(state->number, compat);
	state->early_stage = EARLY_NONE;
	state->room = 0;
	if (config.detail != DETAIL_FULL)
		return 0;
	if (desc->early != NO_ARG && !compat) {
		__u64 address = argument(regs, desc->early, false);
		__u64 bytes = desc->early_bytes;
		barrier_var(bytes);
		if (bytes > EARLY_BYTES)
			bytes = EARLY_BYTES;
		if (!address)
			state->early_stage = EARLY_NULL;
		else if (!bpf_probe_read_user(state->early, bytes, (void *)address))
			state->early_stage = EARLY_READ;
	}
	if (desc->structure_room) {
		__u64 address = argument(regs, desc->structure_len, compat);
		__u32 room;
		if (!bpf_probe_read_user(&room, sizeof(room), (void *)address))
			state->room = room;
	}
	return 0;
}

/* `regs` may be null: they are looked for then. */
static __always_inline int enter(struct pt_regs *regs, long id)
{
	if ((__u64)id >= MAX_NUMBERS)
		return 0;
	struct task_struct *task = current_task();
	bool compat = is_compat(task);
	if (!COMPAT_CALLS && compat) {
		if (task_state_of(task))
			COUNT(compat);
		return 0;
	}
	compat = COMPAT_CALLS && compat;
	const volatile struct call_desc *desc = desc_of(id, compat);
	if (!desc->selected)
		return 0;
	if (is_left(task))
		return 0;
	struct task_state *state = task_state_of(task);
	if (!is_recorded(state)) {
		remember_left();
		return 0;
	}
	if (unlikely(state->flags != TASK_ANNOUNCED))
		announce();
	if (!regs)
		regs = task_registers(task, id);
	if (!regs)
		return 0;
	__u64 aio_began = 0;
	/* Watched for operations of AIO only, which these programs do not see. */
	if (!(HAVE_OPERATIONS && config.aio) && !(desc->selected & WATCH_CALL))
		return 0;
	if (HAVE_OPERATIONS && config.aio && unlikely(desc->selected & ~WATCH_CALL)) {
		aio_began = bpf_ktime_get_ns();
		if (desc->selected & WATCH_AIO_EXIT)
			aio_harvest_all();
		else
			aio_enter(desc->selected, argument(regs, 0, false),
				  argument(regs, 1, false), argument(regs, 2, false));
		if (!(desc->selected & WATCH_CALL))
			return 0;
	}
	/* One call in COST_SAMPLE is timed: what the programs themselves take. */
	__u64 began = state->calls++ & (COST_SAMPLE - 1) ? 0 : bpf_ktime_get_ns();
	state->number = id;
	state->file = 0;
	state->noted = 0;
	state->call_flags = compat ? STASH_COMPAT : 0;
	if (is_noted_late(task, desc)) {
		state->call_flags |= STASH_LATE;
		if (!filter.errors_only) {
			state->entry_pos = NO_OFFSET;
			state->entry_pos2 = NO_OFFSET;
			struct file *file =
				desc->flags & (DESC_POSITION | DESC_WRITES)
					? file_of_fd(task, fd_argument(regs, desc->fd, compat))
					: NULL;
			if (file)
				state->entry_pos = lowest_offset(
					file, READ(file, f_inode),
					desc->flags & DESC_WRITES &&
						write_appends(file,
							      write_flags(desc, regs, compat)));
		}
	} else if (!note_files(task, state, desc, regs, compat, false, 0)) {
		state->enter_ns = 0;
		state->call_flags = STASH_LEFT_OUT;
		return 0;
	}
	if (config.network)
		note_early(state, regs);
	if (config.streams && desc->stream)
		enter_streams(task, state, desc, regs, compat);
#if HAVE_LAYERS
	if (layer_config.counts)
		cache_reset(&state->layers);
#endif
	if (config.perf_counters)
		perf_begins(&state->perf);
	/* Last, so that what is done above does not count as the call's time. */
	__u64 now = bpf_ktime_get_ns();
	state->enter_ns = now;
	if (aio_began) {
		/* The call begins before its operations; its end is as much earlier. */
		state->aio_ns = now - aio_began;
		state->enter_ns = aio_began;
	}
	state->timed_ns = began ? now - began : 0;
	return 0;
}

struct iov_sum {
	__u64 address;
	__u64 count;
	__u64 compat; /* segments of 8 bytes */
	__u64 sum;
};

/* What lies on the stack at a time: older kernels have little of it. */
enum { IOV_CHUNK = FATHOM_KERNEL >= 613 || !HAVE_LOOPS ? 8 : 4 };

/* A segment of more bytes than that is none that a program means: a sum of IOV_MAX
 * of them would not fit 63 bits. */
enum { SEGMENT_BITS = 53 };

/* Bytes of segment `i`, whose bits go to *all, too. */
static __always_inline __u64 segment_bytes(__u64 *iov, int i, bool compat, __u64 *all)
{
	__u64 bytes = compat ? iov[i] >> 32 : iov[2 * i + 1];
	*all |= bytes;
	return bytes;
}

/* Bytes that the first segments of a vector ask for, IOV_CHUNK of them at most;
 * NO_SIZE when they can't be read. */
__noinline __u64 iov_chunk(__u64 address, __u64 count, bool compat)
{
	/* struct iovec: base and length. */
	__u64 iov[2 * IOV_CHUNK];
	__u64 sum = 0, all = 0;
	__builtin_memset(iov, 0, sizeof(iov));
	__u64 bytes = count < IOV_CHUNK ? count : IOV_CHUNK;
	bytes *= compat ? 8 : 16;
	/* Compared right before the call: older verifiers do not carry bounds
	 * through the product. */
	barrier_var(bytes);
	if (bytes > sizeof(iov))
		bytes = sizeof(iov);
	if (bpf_probe_read_user(iov, bytes, (void *)address))
		return NO_SIZE;
#pragma unroll
	for (int i = 0; i < IOV_CHUNK; i++)
		/* Of a 32-bit program: both in one word. */
		sum += segment_bytes(iov, i, compat, &all);
	/* More than a sum of them can hold. */
	return all >> SEGMENT_BITS ? NO_SIZE : sum;
}

static long iov_step(__u64 index, struct iov_sum *s)
{
	__u64 done = index * IOV_CHUNK;
	if (done >= s->count)
		return 1;
	__u64 bytes =
		iov_chunk(s->address + (s->compat ? 8 : 16) * done, s->count - done, s->compat);
	s->sum = bytes == NO_SIZE ? NO_SIZE : s->sum + bytes;
	return bytes == NO_SIZE;
}

/* Bytes that a vector asks for; NO_SIZE when it can't be read. */
__noinline __u64 iov_bytes(__u64 address, __u64 count, bool compat)
{
	struct iov_sum s = { .address = address, .count = count, .compat = compat };
	if (count <= IOV_CHUNK)
		return iov_chunk(address, count, compat);
	if (count > IOV_MAX)
		return NO_SIZE;
	LOOP(IOV_MAX / IOV_CHUNK, iov_step, &s);
	return s.sum;
}

/* Bytes that the segments of a struct msghdr ask for; NO_SIZE when it can't be read. */
static __always_inline __u64 message_bytes(struct task_state *state, __u64 address, bool compat)
{
	/* Behind the name and its length. Into map memory, to leave the stack to iov_bytes(). */
	__u64 *vector = &state->args[6];
	if (bpf_probe_read_user(vector, 16, (void *)address + (compat ? 8 : 16)))
		return NO_SIZE;
	if (compat)
		return iov_bytes((__u32)vector[0], vector[0] >> 32, true);
	return iov_bytes(vector[0], vector[1], false);
}

#if HAVE_CONTENT
/* Sends a call that moved data, with its content. */
static __noinline bool data_call(struct task_state *state, struct call_record *call)
{
	const volatile struct call_desc *desc = desc_of(state->number, false);
	struct content_source from = {
		.bytes = call->ret,
	};
	if (desc->buf != NO_ARG) {
		from.address = kept_argument(state, desc->buf);
		from.left = call->ret;
	} else {
		from.iov = kept_argument(state, desc->iov);
		from.segments = kept_argument(state, desc->iovcnt);
	}
	cache_settle(&state->layers);
	return content_output(call, &state->layers.cache, state->entry_pos, &from);
}

/* Whether the descriptor of a call stands for a stream socket. */
static __always_inline bool is_stream_socket(struct call_record *call, bool has_flags)
{
	/* With MSG_TRUNC bytes of a stream are dropped, and the buffer stays as it was. */
	enum { MESSAGE_FLAGS = MSG_OOB | MSG_PEEK | MSG_TRUNC | MSG_ERRQUEUE };
	struct file *file = file_of_fd(current_task(), call->fd);
	if (!file || !call->file || (has_flags && call->aux & MESSAGE_FLAGS))
		return false;
	struct inode *inode = READ(file, f_inode);
	if ((READ(inode, i_mode) & S_IFMT) != S_IFSOCK)
		return false;
	struct socket *socket = (struct socket *)BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, type) == SOCK_STREAM;
}

/* Sends the first bytes that a call moved on a stream socket. */
static __noinline int beginning_of_call(struct task_state *state)
{
	const volatile struct call_desc *desc = desc_of(state->number, false);
	struct call_record *call = &state->call;
	if (!is_stream_socket(call, desc->any_type))
		return 0;
	struct content_source from = {
		.bytes = call->ret,
	};
	if (desc->buf != NO_ARG) {
		from.address = kept_argument(state, desc->buf);
		from.left = call->ret;
	} else if (desc->iov != NO_ARG) {
		from.iov = kept_argument(state, desc->iov);
		from.segments = kept_argument(state, desc->iovcnt);
	} else {
		/* As message_bytes() left them. */
		from.iov = state->args[6];
		from.segments = state->args[7];
	}
	beginning_output(call, &from);
	return 0;
}
#endif

/* Where the I/O of a call took place whose descriptor has a position that was noted at its
 * entry; whether that has no room in a slot. */
static __always_inline bool place_io(struct task_struct *task, struct task_state *state,
				     const volatile struct call_desc *desc, bool at_position,
				     bool pending)
{
	struct call_record *call = &state->call;
	__s64 ret = call->ret;
	bool appends = state->call_flags & STASH_APPEND;
	bool shared = state->call_flags & STASH_SHARED;
	if (!at_position && !appends)
		return false;
	struct file *file = pending ? NULL : file_of_fd(task, call->fd);
	bool same = file && (__u64)file == state->file_ptr;
	if (ret <= 0 || !same) {
		/* Nothing has moved it, or the descriptor is of another file now. */
		if (at_position) {
			__s64 position = same ? READ(file, f_pos) : state->entry_pos;
			bool certain = !shared || (same && position == state->entry_pos);
			call->offset =
				certain && !appends && (same || pending) ? position : NO_OFFSET;
		}
		return false;
	}
	if (at_position) {
		call->offset = READ(file, f_pos) - ret;
		bool raced = shared && call->offset != state->entry_pos;
		if (shared && desc->aux == NO_ARG) {
			call->flags |= CALL_SHARED_POSITION;
			/* Not `file`: arithmetic on a kernel pointer is
			 * refused. */
			call->aux = *(volatile __u64 *)&state->file_ptr >> 6;
		}
		if (raced)
			call->flags |= CALL_POSITION_RACED | (appends ? CALL_APPENDS : 0);
		return raced;
	}
	/* pwrite(2): Linux appends whatever the offset, and leaves the position. Others may
	 * have appended since. */
	call->offset = READ(READ(file, f_inode), i_size) - ret;
	if (call->offset == state->entry_pos)
		return false;
	call->offset = NO_OFFSET;
	call->flags |= CALL_POSITION_RACED;
	return true;
}

/* The file that a call is about besides those that were noted at its entry: one that it made a
 * descriptor of, where it went, what is mapped. */
static __always_inline void name_result(struct task_struct *task, struct task_state *state,
					const volatile struct call_desc *desc)
{
	struct call_record *call = &state->call;
	__u32 flags = desc->flags;
	__u64 now = call_end(call);
	/* The descriptor that was made, or that of a ring when nothing else has a path. */
	bool shown = desc->ring != NO_ARG && !desc->path1 && !(flags & DESC_RET_FD);
	__s64 fd = flags & DESC_RET_FD ? call->ret : shown ? call->fd : -1;
	if (fd >= 0) {
		struct file *file = file_of_fd(task, fd);
		if (file)
			call->file = handle_of(state, file, now);
	}
	if (config.network && desc->flow == FLOW_PAIR && call->ret == 0)
		name_pair(task, state, desc, now);
	if (flags & DESC_CHDIR && call->ret == 0)
		call->file = handle_of_directory(state, task, desc->chroots, now);
#if HAVE_FAULTS
	/* Calls on mapped memory (msync): the file that is mapped there. */
	if (unlikely(desc->mapped != NO_ARG)) {
		__u64 address = desc->mapped == RESULT_ARG ? (__u64)call->ret
							   : kept_argument(state, desc->mapped);
		bool busy;
		__u64 found = mapping_at(task, &state->fault, address, false, &busy);
		struct vm_area_struct *vma = KERNEL_OBJECT(vm_area_struct, found);
		struct file *file = found ? mapped_file(vma) : NULL;
		if (file) {
			call->file = handle_of(state, file, now);
			call->offset = mapped_offset(vma, address);
		}
	}
#endif
}

/* A call that moves the position of a descriptor, or gives it up, names the description that
 * several may share. */
static __always_inline void name_description(struct task_state *state,
					     const volatile struct call_desc *desc)
{
	struct call_record *call = &state->call;
	if (!(state->call_flags & STASH_SHARED) || call->ret < 0)
		return;
	__u32 description = state->file_ptr >> 6;
	call->flags |= CALL_SHARED_POSITION;
	if (desc->seeks)
		call->size = description;
	else
		call->aux = description;
}

/* What a call that is not plain has; whether it has no room in a slot. */
static __always_inline bool add_rest(struct task_struct *task, struct task_state *state,
				     bool pending)
{
	struct call_record *call = &state->call;
	const volatile struct call_desc *desc = desc_of_state(state);
	bool compat = COMPAT_CALLS && state->call_flags & STASH_COMPAT;
	bool wide = false;
	if (desc->aux != NO_ARG)
		call->aux = kept_argument(state, desc->aux);
	bool at_position = desc->flags & DESC_POSITION;
	if (desc->offset != NO_ARG) {
		call->offset = kept_long_argument(state, desc->offset, desc->offset_hi, compat)
			       << desc->offset_shift;
		/* preadv2 and pwritev2: -1 stands for the position. */
		if (call->offset == -1 && desc->iov != NO_ARG)
			at_position = true;
	}
	if (desc->iov != NO_ARG) {
		__u64 segments = kept_argument(state, desc->iovcnt);
		if (config.detail != DETAIL_RAW && !pending)
			call->size = iov_bytes(kept_argument(state, desc->iov), segments, compat);
		if (likely(!(call->size >> SEGMENTS_SHIFT) && segments < 0xffff)) {
			call->size |= segments << SEGMENTS_SHIFT;
		} else {
			state->call_flags |= STASH_SEGMENTS;
			wide = true;
		}
	}
	if (config.network && desc->message != NO_ARG && config.detail != DETAIL_RAW && !pending)
		call->size = message_bytes(state, kept_argument(state, desc->message), compat);
	if (desc->seeks || desc->releases) {
		if (!pending)
			name_description(state, desc);
	} else if (state->call_flags & STASH_SEEKABLE) {
		if (place_io(task, state, desc, at_position, pending))
			wide = true;
	} else if (at_position) {
		call->offset = NO_OFFSET;
	}
	if (config.detail != DETAIL_RAW && !pending)
		name_result(task, state, desc);
	return wide;
}

/* The same for a call of the present task that has returned. */
VERIFIED_ONCE int rest_of_call(struct task_state *state)
{
	return state ? add_rest(current_task(), state, false) : false;
}

/* Makes the record of the call that `state` holds. */
static __always_inline void complete(struct task_struct *task, struct task_state *state,
				     struct pt_regs *regs, __s64 ret, __u64 now, bool pending)
{
	bool compat = COMPAT_CALLS && state->call_flags & STASH_COMPAT;
	const volatile struct call_desc *desc = desc_of(state->number, compat);
	__u32 flags = desc->flags;
	/* Not on the stack, of which older kernels have little. */
	struct call_record *call = &state->call;
	call->kind = RECORD_CALL;
	call->flags = pending ? CALL_PENDING : 0;
	call->syscall = desc->syscall;
	call->ts_ns = state->enter_ns;
	call->dur_ns = now - state->enter_ns;
	call->pid = READ_TYPED(task, tgid);
	call->tid = READ_TYPED(task, pid);
	call->ret = ret;
	call->file = state->file;
	call->aux = 0;
	call->offset = NO_OFFSET;
	call->size = NO_SIZE;
	state->enter_ns = 0;

	if (config.streams && desc->stream && !pending)
		leave_streams(state, desc, regs, compat, ret);
	bool plain = likely(desc->plain);
	bool wide = flags & DESC_WIDE || unlikely(state->call_flags & STASH_BEFORE);
	if (plain) {
		call->fd = argument(regs, PLAIN_FD, false);
		if (desc->size != NO_ARG)
			call->size = argument(regs, PLAIN_SIZE, false);
	} else {
		call->fd = -1;
		keep_arguments(state, regs, compat);
		if (desc->fd != NO_ARG)
			call->fd = kept_argument(state, desc->fd);
		else if (desc->ring != NO_ARG)
			call->fd = kept_argument(state, desc->ring);
		if (desc->size != NO_ARG)
			call->size = likely(desc->size_hi == NO_ARG)
					     ? kept_argument(state, desc->size)
					     : kept_long_argument(state, desc->size, desc->size_hi,
								  compat);
	}
	/* When another thread gave the descriptor to another file meanwhile, nobody can tell
	 * which of the two the call found. */
	if (desc->fd != NO_ARG && !desc->releases && !pending &&
	    (descriptors_are_shared(task) || state->call_flags & STASH_BEFORE)) {
		struct file *file = file_of_fd(task, call->fd);
		if (file && (__u64)file != state->file_ptr)
			call->file = 0;
	}
	if (config.counters || config.tail) {
		if (flags & DESC_RET_FD && ret >= 0 && config.detail != DETAIL_RAW && !pending) {
			struct file *file = file_of_fd(task, ret);
			if (file)
				call->file = handle_of(state, file, now);
		}
		if (config.counters) {
			if (!pending)
				count_call(call, flags, true);
			return;
		}
		/* One that began before the recording is pending in another sense. */
		if (!pending && !(state->call_flags & STASH_BEFORE) &&
		    counted_instead(call, flags, state->noted, true)) {
			state->perf.stage = PERF_NOT;
			return;
		}
	}
	if (plain) {
		if (desc->offset != NO_ARG)
			call->offset = argument(regs, PLAIN_OFFSET, false);
		if (desc->releases) {
			if (!pending)
				name_description(state, desc);
		} else if (state->call_flags & STASH_SEEKABLE &&
			   place_io(task, state, desc, flags & DESC_POSITION, pending)) {
			wide = true;
		}
	} else if (pending ? add_rest(task, state, true) : rest_of_call(state)) {
		wide = true;
	}

	if (config.streams && desc->stream && state->streams[0].offset != NO_OFFSET && !pending)
		call->offset = state->streams[0].offset;

	bool cached = false;
#if HAVE_LAYERS
	state->layers.op_ns = 0;
	state->layers.iocb = 0;
	cached = layer_config.counts && !pending && cache_used(&state->layers);
#endif
#if HAVE_CONTENT
	if (config.spans && !pending && ret > 0 && !compat &&
	    (desc->buf != NO_ARG || desc->iov != NO_ARG || desc->message != NO_ARG)) {
		if (plain)
			keep_arguments(state, regs, false);
		beginning_of_call(state);
	}
	if (config.content && !pending && ret > 0 && !desc->any_type &&
	    (desc->buf != NO_ARG || desc->iov != NO_ARG)) {
		if (plain)
			keep_arguments(state, regs, false);
		/* Vectors of 32-bit programs are others; such a record does not tell
		 * that the call began before. */
		if (!compat && !(state->call_flags & STASH_BEFORE) && data_call(state, call)) {
			COUNT(wide_calls);
			if (cached)
				COUNT(caches);
			if (config.stacks)
				state->stack_ns = call->ts_ns;
			return;
		}
		call->flags |= CALL_NO_CONTENT;
	}
#endif
	bool sent = false;
#if HAVE_LAYERS
	if (cached && !wide) {
		int done = cached_call_output(state);
		sent = done == CACHED_SENT;
		wide = done == CACHED_TOO_LARGE;
	}
#endif
	if (!cached && !wide)
		sent = slot_output(call);
	if (wide) {
		if (plain)
			keep_arguments(state, regs, false);
		sent = wide_call(state, pending);
		if (sent)
			COUNT(wide_calls);
	}
	if (cached && sent)
		COUNT(caches);
	if (unlikely(!sent)) {
		/* Looked up again: before 6.8 the frames of a chain of calls leave no room to
		 * keep it. */
		desc = desc_of(state->number, compat);
		state->perf.stage = PERF_NOT;
		/* A ring is not the file of the call. */
		if (desc->ring != NO_ARG && !desc->path1 && !(desc->flags & DESC_RET_FD))
			call->file = 0;
		lose(call, desc->flags);
	} else if (config.stacks && !pending && !compat) {
		state->stack_ns = call->ts_ns;
	}
}

/* Whether a return without an entry is not to be recorded: the call was left out, or the
 * task has just been taken in and may be in a call whose entry was not seen. */
static __always_inline bool leaves_without_entry(struct task_state *state)
{
	return state->call_flags & (STASH_LEFT_OUT | STASH_BEFORE) ||
	       state->flags != TASK_ANNOUNCED;
}

/* `regs` as for enter(). */
static __always_inline int leave(struct pt_regs *regs, __u32 number, long ret)
{
	if (number >= MAX_NUMBERS)
		return 0;
	struct task_struct *task = current_task();
	bool compat = is_compat(task);
	if (!COMPAT_CALLS && compat)
		return 0;
	compat = COMPAT_CALLS && compat;
	const volatile struct call_desc *desc = desc_of(number, compat);
	/* Where operations are not seen, any call of an io_uring may have made one that renames. */
	if (unlikely(desc->flags & DESC_RENAMES) &&
	    (desc->ring == NO_ARG ? ret == 0 : !HAVE_OPERATIONS && ret >= 0))
		__sync_fetch_and_add(&rename_epoch, 1);
	if (filters(1 << RULE_UID) && unlikely(desc->credentials) && ret == 0)
		reconsider(task);
	if (!desc->selected)
		return 0;
	bool watched = HAVE_OPERATIONS && config.aio && desc->selected & ~WATCH_CALL;
	if (!watched && !(desc->selected & WATCH_CALL))
		return 0;
	bool failed = is_error(desc->flags, ret);
	/* The entry that the state holds is then an old one, which seccomp would make
	 * look like that of a call that it answers. */
	if (filter.errors_only && !failed && !watched && !has_seccomp(task))
		return 0;
	struct task_state *state = state_if_recorded(task);
	if (!state)
		return 0;
	/* Most calls that filters leave out end here: before the clock is read. */
	if (!watched && !state->enter_ns && leaves_without_entry(state))
		return 0;
	__u64 now = bpf_ktime_get_ns();
	bool entered = state->enter_ns && state->number == number;
	if (filter.min_dur_ns && entered && !watched && now - state->enter_ns < filter.min_dur_ns) {
		state->enter_ns = 0;
		return 0;
	}
	if (config.perf_counters && entered)
		perf_ends(&state->perf);
	if (!regs)
		regs = task_registers(task, number);
	if (!regs)
		return 0;
	if (unlikely(watched)) {
		bool reaps = desc->selected & WATCH_AIO_REAP;
		/* Never a 32-bit program: its calls are not marked. */
		aio_exit(desc->selected, ret, argument(regs, 1, false),
			 reaps ? argument(regs, 3, false) : argument(regs, 2, false));
		if (!(desc->selected & WATCH_CALL))
			return 0;
		/* The call begins before its operations, but what taking them in
		 * took is not its own. */
		if (entered)
			now -= state->aio_ns;
	}
	if (unlikely(!entered)) {
		/* A return without an entry: seccomp has answered the call. */
		if (leaves_without_entry(state))
			return 0;
		if (desc->fd == NO_ARG ? !names_file(desc) && nothing_passes() : nothing_passes())
			return 0;
		state->enter_ns = now;
		state->number = number;
		state->file = 0;
		state->file2 = 0;
		state->file_ptr = 0;
		state->noted = 0;
		state->call_flags = compat ? STASH_COMPAT : 0;
		state->timed_ns = 0;
		state->early_stage = EARLY_NONE;
		state->room = 0;
		state->streams[0].stage = state->streams[1].stage = STREAM_NONE;
		state->perf.stage = PERF_NOT;
	}
	if ((filter.errors_only && !failed) || !call_passes(task, state, regs, ret, now, false) ||
	    (judges_outcome() && state->call_flags & STASH_LATE &&
	     !note_files_late(task, state, regs, now))) {
		state->enter_ns = 0;
		return 0;
	}
#if HAVE_LIBRARY
	if (config.library)
		library_announce(task, READ_TYPED(regs, sp), now);
#endif
	complete(task, state, regs, ret, now, false);
	if (config.perf_counters)
		perf_output(&state->perf, state->call.ts_ns, state->call.dur_ns, state->call.pid,
			    state->call.tid);
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

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long id)
{
	return enter(regs, id);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long ret)
{
	return leave(regs, syscall_number(regs), ret);
}

#if HAVE_CLASSIC
SEC("tracepoint/raw_syscalls/sys_enter")
int sys_enter_classic(struct trace_event_raw_sys_enter *ctx)
{
	return enter(NULL, ctx->id);
}

SEC("tracepoint/raw_syscalls/sys_exit")
int sys_exit_classic(struct trace_event_raw_sys_exit *ctx)
{
	return leave(NULL, ctx->id, ctx->ret);
}
#endif
