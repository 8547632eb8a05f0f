/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler: one record a time that a task was off the CPU in the course of a
 * request, made when it is back.
 */
#include "include/layers.h"

/* Sends the record of the time that `task` has been off the CPU, until `now`. */
static __always_inline void wait_ends(struct task_struct *task, struct layer_state *layers,
				      __u64 now, __u32 flags)
{
	struct wait_record record = {
		.flags = layers->out_flags | flags,
		.state = layers->out_state,
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

static __always_inline int switched(bool preempted, struct task_struct *prev,
				    struct task_struct *next, unsigned int prev_state)
{
	struct task_state *state = task_state_of(prev);
	__u64 request = state ? request_of(state) : 0;
	__u64 now = bpf_ktime_get_ns();
	/* That it came back was not seen: the kernel may leave programs out. */
	if (state && state->layers.out_ns) {
		note_below(state);
		wait_ends(prev, &state->layers, now, WAIT_UNSEEN);
	}
	if (request) {
		struct layer_state *layers = &state->layers;
		bool runs = preempted || !prev_state;
		layers->out_ns = now;
		layers->out_request = request;
		layers->wake_ns = 0;
		layers->out_flags = runs ? WAIT_PREEMPTED : 0;
		layers->out_state = runs ? 0 : prev_state;
		if (BPF_CORE_READ_BITFIELD(prev, in_iowait))
			layers->out_flags |= WAIT_IO;
		if (!runs)
			layers->op_ns = 0;
	}
	state = task_state_of(next);
	if (state && state->layers.out_ns) {
		note_below(state);
		wait_ends(next, &state->layers, bpf_ktime_get_ns(), 0);
	}
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(layer_switch, bool preempted, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	return switched(preempted, prev, next, prev_state);
}

/* Before 5.18. */
SEC("tp_btf/sched_switch")
int BPF_PROG(layer_switch_stateless, bool preempted, struct task_struct *prev,
	     struct task_struct *next)
{
	unsigned int state = 0;
	if (bpf_core_field_exists(struct task_struct___state, __state))
		state = BPF_CORE_READ((struct task_struct___state *)prev, __state);
	else
		state = BPF_CORE_READ((struct task_struct___volatile_state *)prev, state);
	return switched(preempted, prev, next, state);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(layer_waking, struct task_struct *task)
{
	struct task_state *state = task_state_of(task);
	if (!state || !state->layers.out_ns || state->layers.wake_ns)
		return 0;
	struct layer_state *layers = &state->layers;
	layers->wake_ns = bpf_ktime_get_ns();
	struct irq_state *irq = irq_state();
	if (irq && irq->depth) {
		__u32 type = irq->type & (IRQ_TYPES - 1);
		/* Whoever is on the CPU has nothing to do with it. */
		layers->out_flags |= WAIT_BY_INTERRUPT;
		layers->waker = type << 16 | (irq->number[type] & 0xffff);
		__builtin_memcpy(layers->waker_comm, irq->name, sizeof(irq->name));
		return 0;
	}
	struct task_struct *waker = current_task();
	layers->waker = READ_TYPED(waker, pid);
	bpf_probe_read_kernel(layers->waker_comm, sizeof(layers->waker_comm), waker->comm);
	return 0;
}
