/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The entry of a call: what will be gone or different at the return is kept in the task's state.
 */
#ifndef FATHOM_SYSCALL_ENTRY_H
#define FATHOM_SYSCALL_ENTRY_H

#include "include/emit.h"
#include "include/call_filter.h"
#include "include/perf_counters.h"
#include "include/segments.h"
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
#if HAVE_CONTEXTS
#include "include/context.h"
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
#if HAVE_CONTEXTS
	if (config.contexts && !compat)
		context_note(state);
#endif
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

#endif
