/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Periods in which a recorded task is off the CPU: what it was doing as it left, and the
 * record when it is back.
 *
 * With `--rows tail` only those in the course of a request count. Else the periods of a task
 * have no gaps: from when it is taken in (tasks.bpf.h) until it exits, it runs or is in one.
 */
#ifndef FATHOM_WAITS_H
#define FATHOM_WAITS_H

#include "layers.h"

/* Whether `regs` are those of a call. Exceptions leave their error code where calls have
 * their number, but only calls have the address of the next instruction in rcx, too. */
static __always_inline bool are_of_call(struct pt_regs *regs, bool compat)
{
#if defined(__TARGET_ARCH_x86)
	/* A page fault in user mode: bit 2 is set, and no other above 5. */
	__u64 number = READ_TYPED(regs, orig_ax);
	if (!(number & 4) || number & ~0x3full || compat)
		return true;
	return READ_TYPED(regs, cx) == READ_TYPED(regs, ip);
#else
	return true;
#endif
}

/* In which call `task` is, which does not run or is the present one, and the type of its file:
 * enum wait_place without a state. `address`: the first argument of a call without a file. */
static __always_inline __u32 place_of(struct task_struct *task, __u64 *address)
{
	*address = 0;
	if (READ_TYPED(task, flags) & (PF_KTHREAD | PF_IO_WORKER))
		return WAIT_NO_CALL;
	struct pt_regs *regs = kernel_entry(task);
	if (!regs)
		return WAIT_NO_CALL;
	__u32 number = syscall_number(regs);
	bool compat = is_compat(task);
	if (number >= MAX_NUMBERS || !are_of_call(regs, compat))
		return WAIT_NO_CALL;
	if (!COMPAT_CALLS && compat)
		return WAIT_OTHER_CALL;
	compat = COMPAT_CALLS && compat;
	const volatile struct call_desc *desc = desc_of(number, compat);
	if (!desc->known)
		return WAIT_OTHER_CALL;
	__u32 place = desc->syscall;
	if (desc->fd == NO_ARG) {
		*address = argument(regs, 0, compat);
		return place;
	}
	struct file *file = file_of_fd(task, argument(regs, desc->fd, compat));
	if (file) {
		__u32 mode = READ(READ(file, f_inode), i_mode);
		place |= (mode & S_IFMT) >> 12 << WAIT_TYPE_SHIFT;
	}
	return place;
}

/* The state of `task`: enum wait_state, where enum wait_place has it. */
static __always_inline __u32 state_place(__u32 state)
{
	__u32 is = state & TASK_UNINTERRUPTIBLE ? WAIT_UNINTERRUPTIBLE
		   : state & TASK_INTERRUPTIBLE ? WAIT_INTERRUPTIBLE
		   : state & TASK_STOPPED	? WAIT_STOPPED
						: WAIT_OTHER_STATE;
	return is << WAIT_STATE_SHIFT;
}

/* `task`, which is recorded, is off the CPU from `now` on. `state` of the kernel, 0: it would
 * go on. */
static __always_inline void wait_begins(struct task_struct *task, struct layer_state *layers,
					__u64 now, __u64 request, __u32 state)
{
	layers->out_request = request;
	layers->wake_ns = 0;
	layers->out_flags = state ? 0 : WAIT_PREEMPTED;
	layers->out_place = WAIT_NO_CALL;
	if (state) {
		__u64 address;
		__u32 place = place_of(task, &address);
		if (address && !request) {
			layers->out_request = address;
			place |= WAIT_TYPE_ADDRESS << WAIT_TYPE_SHIFT;
		}
		layers->out_place = place | state_place(state);
		if (layers->lock)
			layers->out_flags |= WAIT_LOCK;
	}
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		layers->out_flags |= WAIT_IO;
	layers->out_ns = now;
}

/* Sends the record of the time that `task` has been off the CPU, until `now`. */
static __always_inline void wait_ends(struct task_struct *task, struct layer_state *layers,
				      __u64 now, __u32 flags)
{
	struct wait_record record = {
		.flags = layers->out_flags | flags,
		.place = layers->out_place,
		.ts_ns = layers->out_ns,
		.dur_ns = now - layers->out_ns,
		.pid = READ_TYPED(task, tgid),
		.tid = READ_TYPED(task, pid),
		.request_ns = layers->out_request,
	};
	if (layers->wake_ns) {
		record.flags |= WAIT_WOKEN;
		record.wake_ns = layers->wake_ns;
		record.waker = layers->waker;
		__builtin_memcpy(record.comm, layers->waker_comm, sizeof(record.comm));
	}
	layers->out_ns = 0;
	if (likely(slot_output_kind(&record, RECORD_WAIT))) {
		COUNT(layers);
		COUNT(waits);
	} else {
		layer_lost(LOST_WAIT, record.ts_ns, record.dur_ns, record.pid, 0);
	}
}

/* The state of a task, as the kernel has it. */
static __always_inline __u32 kernel_state(struct task_struct *task)
{
	if (bpf_core_field_exists(struct task_struct___state, __state))
		return BPF_CORE_READ((struct task_struct___state *)task, __state);
	return BPF_CORE_READ((struct task_struct___volatile_state *)task, state);
}

/* Whether periods outside of requests are recorded. */
static __always_inline bool records_all_waits(void)
{
	return layer_config.sched && !config.tail && !config.counters;
}

/* A recorded task that does not run has been taken in. */
static __always_inline void waits_from_now(struct task_struct *task, struct task_state *state,
					   __u64 request, __u32 kernel_state)
{
	if (records_all_waits() && !state->layers.out_ns)
		wait_begins(task, &state->layers, bpf_ktime_get_ns(), request, kernel_state);
}

#endif
