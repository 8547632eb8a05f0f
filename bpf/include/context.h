/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Span contexts of threads (--otel-context): an SDK of OpenTelemetry publishes the span that is
 * active in a thread in a thread-local variable, the address of a record with the ids (OTEP 4947).
 * Only the thread itself changes them, so they hold still while it is in a call, and what is read at
 * the entry is the span that made the call.
 *
 * User space finds out where the variable is in each process (crates/probe/src/contexts). A record
 * is sent before the record of the first call with another context than the last one. Without room
 * for it the call is lost, too: a call that is stored has the context that it had.
 */
#ifndef FATHOM_CONTEXT_H
#define FATHOM_CONTEXT_H

#include "emit.h"

enum { CONTEXT_QUEUE = 1024 };

/* By process; sized by user space. What is not found has a place, too, with the code that the process had then. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct context_place);
} context_places SEC(".maps");

/* Processes in which user space is to look for the variable. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, CONTEXT_QUEUE);
	__type(value, __u32);
} context_queue SEC(".maps");

/* What a reader needs of the record that a thread publishes. */
struct context_header {
	__u64 trace[2];
	__u64 span;
	__u8 valid;
	__u8 flags;
	__u16 attributes_bytes;
} __attribute__((packed));

static __always_inline __u64 thread_pointer(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return READ_TYPED(task, thread.fsbase);
#else
	return READ_TYPED(task, thread.uw.tp_value);
#endif
}

/* The address of the variable of a thread; 0: the thread has not used it, 1: it cannot be read. */
static __always_inline __u64 context_variable(struct context_place *place, __u64 thread)
{
	__u64 dtv, length, block;
	__u32 module = place->module;
	if (!module)
		return thread + place->offset;
	if (bpf_probe_read_user(&dtv, sizeof(dtv), (void *)(thread + place->dtv_at)))
		return 1;
	if (bpf_probe_read_user(&length, sizeof(length), (void *)(dtv + place->length_at)))
		return 1;
	if (length < module)
		return 0;
	__u64 entry = (__u64)module << (place->entry_shift & 7);
	if (bpf_probe_read_user(&block, sizeof(block), (void *)(dtv + entry)))
		return 1;
	/* The memory is made when the thread uses it; glibc marks that by -1, musl by 0. */
	return block && block != ~0ULL ? block + place->offset : 0;
}

/* Reads the context of a thread; enum context_kind. */
static __always_inline __u32 context_of(struct task_struct *task, struct context_place *place,
					struct context_header *header, __u64 *record)
{
	__u64 thread = thread_pointer(task);
	if (!thread)
		return CONTEXT_UNKNOWN;
	__u64 variable = context_variable(place, thread);
	if (!variable)
		return CONTEXT_NONE;
	if (bpf_probe_read_user(record, sizeof(*record), (void *)variable))
		return CONTEXT_UNREADABLE;
	if (!*record)
		return CONTEXT_NONE;
	if (bpf_probe_read_user(header, sizeof(*header), (void *)*record))
		return CONTEXT_UNREADABLE;
	bool has_ids = (header->trace[0] | header->trace[1]) && header->span;
	return header->valid == 1 && has_ids ? CONTEXT_SPAN : CONTEXT_NONE;
}

/* Has user space look at a process again that has more or less code than when it looked last. */
static __always_inline void context_wanted(struct task_struct *task, __u32 pid,
					   struct context_place *place)
{
	struct mm_struct *mm = READ_LINK(task_struct, task, mm);
	__u64 code = mm ? READ(mm, exec_vm) : 0;
	if (!code || (place && place->code_pages == code))
		return;
	if (bpf_map_push_elem(&context_queue, &pid, 0))
		return;
	if (place) {
		place->code_pages = code;
		return;
	}
	struct context_place none = { .code_pages = code };
	bpf_map_update_elem(&context_places, &pid, &none, BPF_NOEXIST);
}

/* Notes the context of the present task, which is in a call. */
VERIFIED_ONCE int context_note(struct task_state *state)
{
	if (!state)
		return 0;
	struct task_struct *task = current_task();
	__u32 pid = READ_TYPED(task, tgid), kind = CONTEXT_UNKNOWN;
	struct context_place *place = bpf_map_lookup_elem(&context_places, &pid);
	struct context_header header = {};
	__u64 record = 0;
	if (place && place->found)
		kind = context_of(task, place, &header, &record);
	else
		context_wanted(task, pid, place);
	if (kind == CONTEXT_UNREADABLE)
		COUNT(contexts_unreadable);
	struct context_seen *seen = &state->context;
	seen->record = record;
	if (kind == seen->kind &&
	    (kind != CONTEXT_SPAN ||
	     (header.trace[0] == seen->trace[0] && header.trace[1] == seen->trace[1] &&
	      header.span == seen->span && header.attributes_bytes == seen->attributes_bytes)))
		return 0;
	seen->kind = kind;
	seen->changed = 1;
	seen->trace[0] = kind == CONTEXT_SPAN ? header.trace[0] : 0;
	seen->trace[1] = kind == CONTEXT_SPAN ? header.trace[1] : 0;
	seen->span = kind == CONTEXT_SPAN ? header.span : 0;
	seen->attributes_bytes = header.attributes_bytes;
	return 0;
}

/* The attributes of the record that the present task has published, behind a record; their bytes. */
static __always_inline __u32 context_attributes(struct context_seen *seen, void *to)
{
	struct context_header header;
	if (bpf_probe_read_user(&header, sizeof(header), (void *)seen->record) ||
	    header.span != seen->span)
		return 0;
	__u32 bytes = header.attributes_bytes;
	if (bytes > MAX_CONTEXT_ATTRIBUTES)
		bytes = MAX_CONTEXT_ATTRIBUTES;
	barrier_var(bytes);
	bytes &= 1023;
	void *from = (void *)(seen->record + sizeof(header));
	return bpf_probe_read_user(to, bytes, from) ? 0 : bytes;
}

/* Sends the context with which the call of `state` was made, which has changed; false if there is
 * no room. `attributes`: the task is the present one. */
static __noinline bool context_output(struct task_state *state, bool attributes)
{
	struct context_seen *seen = &state->context;
	struct scratch *scratch = scratch_get();
	if (!scratch)
		return false;
	struct context_record *record = (void *)scratch->data;
	__builtin_memset(record, 0, sizeof(*record));
	record->kind = RECORD_CONTEXT;
	record->context = seen->kind;
	record->tid = state->call.tid;
	record->ts_ns = state->call.ts_ns;
	record->dur_ns = state->call.dur_ns;
	record->pid = state->call.pid;
	record->trace[0] = seen->trace[0];
	record->trace[1] = seen->trace[1];
	record->span = seen->span;
	__u32 bytes = 0;
	if (attributes && seen->kind == CONTEXT_SPAN)
		bytes = context_attributes(seen, scratch->data + sizeof(*record));
	record->attributes_len = bytes;
	bool sent = wide_output(scratch->data, sizeof(*record) + (bytes & 1023));
	scratch_put(scratch);
	if (sent) {
		seen->changed = 0;
		COUNT(contexts);
	}
	return sent;
}

/* A process has another program, in which the variable is elsewhere, or its first thread has ended. Others
 * of its threads that go on have user space look again. */
static __always_inline void context_forgotten(struct task_struct *task)
{
	__u32 pid = READ_TYPED(task, tgid);
	bpf_map_delete_elem(&context_places, &pid);
}

/* A child has its variables where its parent has them; its id may have been another process'. */
static __always_inline void context_forked(struct task_struct *parent, struct task_struct *child)
{
	__u32 pid = READ_TYPED(child, tgid), parent_pid = READ_TYPED(parent, tgid);
	if (pid == parent_pid)
		return;
	struct context_place *place = bpf_map_lookup_elem(&context_places, &parent_pid);
	if (place && place->found)
		bpf_map_update_elem(&context_places, &pid, place, BPF_ANY);
	else
		bpf_map_delete_elem(&context_places, &pid);
}

#endif
