/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The calls of libraries' functions that a thread is in, and their records (library.bpf.h).
 */
#ifndef FATHOM_LIBRARY_STATE_H
#define FATHOM_LIBRARY_STATE_H

#include "layers.h"

struct library_frame {
	__u64 began_ns;
	__u64 sp;
	__u64 args[LIBRARY_ARGS];
	__u32 function;
	__u32 file;
	__s32 fd;
	__u32 announced;
};

struct library_state {
	__u32 depth;
	__u32 reserved;
	struct library_frame frames[MAX_LIBRARY_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct library_state);
} library_states SEC(".maps");

static __always_inline struct library_state *library_state_of(struct task_struct *task)
{
	return bpf_task_storage_get(&library_states, task, NULL, 0);
}

static __always_inline struct library_state *library_state_make(struct task_struct *task)
{
	return bpf_task_storage_get(&library_states, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

#if defined(__TARGET_ARCH_x86)
struct xol_area {
	unsigned long vaddr;
} CORE;

struct mm_struct___uprobes {
	struct {
		struct xol_area *xol_area;
	} uprobes_state;
} CORE;

/* Whether the place of a call's return address holds what the kernel puts there to see the
 * return (kernel/events/uprobes.c, prepare_uretprobe()). It does not when a call that never
 * returned left the place to another one; until somebody writes there, it does. */
static __always_inline bool returns_to_kernel(struct task_struct *task, __u64 sp)
{
	enum { PAGE_MASK = 4095 };
	struct mm_struct___uprobes *mm = (void *)READ_LINK(task_struct, task, mm);
	__u64 area = BPF_CORE_READ(mm, uprobes_state.xol_area, vaddr), address = 0;
	bpf_probe_read_user(&address, sizeof(address), (void *)sp);
	return area && (address & ~(__u64)PAGE_MASK) == area;
}
#else
/* The return address is in a register first. */
static __always_inline bool returns_to_kernel(struct task_struct *task, __u64 sp)
{
	return true;
}
#endif

/* Whether a thread has left the call of a TLS library without a return, as its stack ends at `sp`. */
static __always_inline bool tls_call_is_over(struct task_struct *task, struct tls_call *tls,
					     __u64 sp)
{
#if defined(__TARGET_ARCH_x86)
	return sp > tls->sp || !returns_to_kernel(task, tls->sp);
#else
	return sp >= tls->sp;
#endif
}

/* Sends the record of the call at the depth of `library`. `what`: its flags, and above them the
 * place of its path (NO_PATH: none). */
enum { PATH_SHIFT = 8, NO_PATH = NO_ARG << PATH_SHIFT };

static __noinline int library_output(struct task_struct *task, struct library_state *library,
				     __s64 ret, __u64 now, __u32 what)
{
	__u32 flags = what & ((1 << PATH_SHIFT) - 1), path = what >> PATH_SHIFT;
	struct scratch *scratch = scratch_get();
	__u32 depth = library->depth;
	struct library_frame *frame = &library->frames[depth & (MAX_LIBRARY_DEPTH - 1)];
	__u64 began_ns = frame->began_ns;
	__u32 pid = READ_TYPED(task, tgid);
	if (!scratch) {
		layer_lost(LOST_LIBRARY_CALL, began_ns, now - began_ns, pid, 0);
		return 0;
	}
	struct library_call_record *record = (void *)scratch->data;
	__builtin_memset(record, 0, sizeof(*record));
	record->kind = RECORD_LIBRARY_CALL;
	record->flags = flags;
	record->function = frame->function;
	record->tid = READ_TYPED(task, pid);
	record->ts_ns = began_ns;
	record->dur_ns = now - began_ns;
	record->pid = pid;
	record->file = frame->file;
	record->fd = frame->fd;
	record->depth = depth;
	if (depth)
		record->parent_ns = library->frames[(depth - 1) & (MAX_LIBRARY_DEPTH - 1)].began_ns;
	__builtin_memcpy(record->args, frame->args, sizeof(record->args));
	record->ret = ret;
	__u64 size = sizeof(*record);
	if (path < LIBRARY_ARGS && config.detail == DETAIL_FULL) {
		long n = bpf_probe_read_user_str(scratch->data + sizeof(*record), MAX_PATH,
						 (void *)frame->args[path & 7]);
		if (n > 1 && n <= MAX_PATH) {
			record->path_len = n - 1;
			size += n - 1;
		}
	}
	bool sent = wide_output(scratch->data, size);
	scratch_put(scratch);
	if (flags & (LIBRARY_CALL_BEGUN | LIBRARY_CALL_NONE))
		frame->announced = sent;
	else if (sent)
		COUNT(library_calls);
	else
		layer_lost(LOST_LIBRARY_CALL, began_ns, now - began_ns, pid, 0);
	return 0;
}

/* Drops calls that cannot return any more, as the thread's stack ends at `sp`; whether there were
 * any. A function that ends with a jump to another one leaves both at the same place. */
static __noinline bool drop_abandoned(struct task_struct *task, struct library_state *library,
				      __u64 sp, __u64 now)
{
	bool dropped = false;
	for (int i = 0; i < MAX_LIBRARY_DEPTH; i++) {
		__u32 depth = library->depth - 1;
		if (depth >= MAX_LIBRARY_DEPTH)
			break;
		__u64 at = library->frames[depth & (MAX_LIBRARY_DEPTH - 1)].sp;
		if (at >= sp && returns_to_kernel(task, at))
			break;
		library->depth = depth;
		dropped = true;
		library_output(task, library, 0, now, LIBRARY_CALL_ABANDONED | NO_PATH);
	}
	return dropped;
}

/* A system call is about to be recorded: names the call of a library that it was made in. */
static __noinline int library_announce(struct task_struct *task, __u64 sp, __u64 now)
{
	struct library_state *library = library_state_of(task);
	if (!library)
		return 0;
	bool dropped = drop_abandoned(task, library, sp, now);
	__u32 depth = library->depth - 1;
	if (depth >= MAX_LIBRARY_DEPTH) {
		if (dropped)
			library_output(task, library, 0, now, LIBRARY_CALL_NONE | NO_PATH);
		return 0;
	}
	struct library_frame *frame = &library->frames[depth & (MAX_LIBRARY_DEPTH - 1)];
	if (frame->announced && !dropped)
		return 0;
	library->depth = depth;
	library_output(task, library, 0, now, LIBRARY_CALL_BEGUN | NO_PATH);
	library->depth = depth + 1;
	return 0;
}

/* The thread or the recording ends: the calls that have not returned. */
static __always_inline void library_pending(struct task_struct *task, __u64 now)
{
	struct library_state *library = library_state_of(task);
	if (!library)
		return;
	for (int i = 0; i < MAX_LIBRARY_DEPTH; i++) {
		__u32 depth = library->depth - 1;
		if (depth >= MAX_LIBRARY_DEPTH)
			return;
		library->depth = depth;
		library_output(task, library, 0, now, LIBRARY_CALL_PENDING | NO_PATH);
	}
}

#endif
