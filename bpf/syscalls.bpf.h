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
#include "syscall_entry.bpf.h"

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
	/* The bytes are encrypted, see tls.bpf.h. */
	if (state->tls.began_ns) {
		state->tls.file = call->file;
		return 0;
	}
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
		if (file) {
			if (READ(file, f_mode) & FMODE_CREATED)
				state->call_flags |= STASH_CREATED;
			call->file = handle_of(state, file, now);
		}
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

/* There is no room for the record of the call that `state` holds. */
static __always_inline void lose_call(struct task_state *state, bool compat)
{
	/* Looked up again: before 6.8 the frames of a chain of calls leave no room to keep it. */
	const volatile struct call_desc *desc = desc_of(state->number, compat);
	state->perf.stage = PERF_NOT;
	/* A ring is not the file of the call. */
	if (desc->ring != NO_ARG && !desc->path1 && !(desc->flags & DESC_RET_FD))
		state->call.file = 0;
	lose(&state->call, desc->flags);
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
#endif
#if HAVE_CONTEXTS
	if (config.contexts && unlikely(state->context.changed) &&
	    !context_output(state, !pending)) {
		lose_call(state, compat);
		return;
	}
#endif
#if HAVE_LAYERS
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
		lose_call(state, compat);
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
#if HAVE_CONTEXTS
		if (config.contexts && !compat)
			context_note(state);
#endif
	}
#if HAVE_CONTEXTS
	/* Its entry was before the recording. */
	if (config.contexts && !compat && unlikely(state->call_flags & STASH_BEFORE))
		context_note(state);
#endif
	if ((filter.errors_only && !failed) || !call_passes(task, state, regs, ret, now, false) ||
	    (judges_outcome() && state->call_flags & STASH_LATE &&
	     !note_files_late(task, state, regs, now))) {
		state->enter_ns = 0;
		return 0;
	}
#if HAVE_LIBRARY
	if (config.library)
		library_announce(task, READ_TYPED(regs, sp), now);
#if HAVE_CONTENT
	if (state->tls.began_ns && tls_call_is_over(task, &state->tls, READ_TYPED(regs, sp)))
		state->tls.began_ns = 0;
#endif
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
