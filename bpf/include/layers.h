/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the layers below the calls share: to which request something belongs, and
 * how their records go out.
 *
 * One record per block request, at its completion, with all its times and bios; one per
 * time off the CPU; one per interrupt; one for the page cache per request. Only events
 * within a recorded request are written, except block requests: those of all
 * processes are, because they share the queue.
 *
 * The kernel may leave out the program that would see an end. So the data of a record
 * are noted at the beginning. When another request takes the address, or the recording
 * ends, the record goes out without an end. The same holds for waits, when the thread
 * leaves the CPU the next time.
 */
#ifndef FATHOM_LAYERS_H
#define FATHOM_LAYERS_H

#include "emit.h"
#include "files.h"

/* A request is known by its thread and the time at which it began: what its own
 * record has. No number has to be handed out or carried through the kernel. */
struct request_key {
	__u64 ns; /* 0: none */
	__u32 tid;
	__u32 pid;
	__u32 file; /* handle, 0 when not known */
	__u32 reserved;
};

/* The beginning of the call or fault that the task is in, 0 when it is in none that
 * may be recorded. A fault in the course of a call is part of the call. */
static __always_inline __u64 request_of(struct task_state *state)
{
	if (!is_recorded(state))
		return 0;
	if (config.tail) {
		struct tail_control *control = tail_control();
		if (control && control->mode == TAIL_NONE)
			return 0;
	}
	return state->enter_ns ? state->enter_ns : state->fault.began_ns;
}

/* With config.tail: something happened in a layer below the call that the task is in. */
static __always_inline void note_below(struct task_state *state)
{
	if (config.tail)
		state->noted = 1;
}

/* A record found no room. */
static __always_inline void layer_lost(__u32 what, __u64 ts_ns, __u64 dur_ns, __u32 pid,
				       __u64 bytes)
{
	COUNT(layers_lost);
	struct call_record lost = {
		.syscall = what,
		.ts_ns = ts_ns,
		.dur_ns = dur_ns,
		.pid = pid,
		.ret = bytes,
		.size = bytes,
	};
	lose(&lost, DESC_RET_BYTES);
}

#endif
