/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interrupts: one record an interrupt or softirq that took the CPU from a task in the
 * course of a request. Time between the interrupt itself and its handler is not seen.
 */
#include "include/layers.h"

enum { IRQ_TYPES = 4, SOFTIRQ_NUMBERS = 10 };

/* What a CPU is in. Softirqs run behind handlers, or are interrupted by them. */
struct irq_state {
	__u64 began_ns[IRQ_TYPES]; /* 0: in none */
	__u32 number[IRQ_TYPES];
	__u32 depth; /* of the types that it is in */
	__u32 type; /* the last that it entered */
	__u8 name[16]; /* of the handler */
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct irq_state);
} irq_states SEC(".maps");

static __always_inline struct irq_state *irq_state(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&irq_states, &zero);
}

static __always_inline void irq_begins(__u32 type, __u32 number, const char *name)
{
	struct irq_state *irq = irq_state();
	if (!irq)
		return;
	if (!irq->began_ns[type])
		irq->depth++;
	irq->type = type;
	irq->number[type] = number;
	if (name)
		bpf_probe_read_kernel_str(irq->name, sizeof(irq->name), name);
	irq->began_ns[type] = bpf_ktime_get_ns();
}

static __always_inline void irq_ends(__u32 type)
{
	struct irq_state *irq = irq_state();
	if (!irq || !irq->began_ns[type])
		return;
	__u64 began = irq->began_ns[type];
	irq->began_ns[type] = 0;
	irq->depth--;
	if (type != IRQ_SOFT && irq->began_ns[IRQ_SOFT])
		irq->type = IRQ_SOFT;
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	__u64 request = state ? request_of(state) : 0;
	if (!layer_config.irq || !request || request > began)
		return;
	note_below(state);
	struct irq_record record = {
		.source = type,
		.number = irq->number[type],
		.ts_ns = began,
		.dur_ns = bpf_ktime_get_ns() - began,
		.pid = READ_TYPED(task, tgid),
		.tid = READ_TYPED(task, pid),
		.request_ns = request,
	};
	if (type == IRQ_HARD)
		__builtin_memcpy(record.name, irq->name, sizeof(record.name));
	if (likely(slot_output_kind(&record, RECORD_IRQ))) {
		COUNT(layers);
		COUNT(irqs);
	} else {
		layer_lost(LOST_IRQ, record.ts_ns, record.dur_ns, record.pid, 0);
	}
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(layer_irq_entry, int irq, struct irqaction *action)
{
	irq_begins(IRQ_HARD, irq, action->name);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(layer_irq_exit, int irq, struct irqaction *action, int ret)
{
	irq_ends(IRQ_HARD);
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(layer_softirq_entry, unsigned int number)
{
	irq_begins(IRQ_SOFT, number, NULL);
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(layer_softirq_exit, unsigned int number)
{
	irq_ends(IRQ_SOFT);
	return 0;
}

#if defined(__TARGET_ARCH_x86)
/* On other processors these are handled like interrupts of devices. */
SEC("tp_btf/local_timer_entry")
int BPF_PROG(layer_timer_entry, int vector)
{
	irq_begins(IRQ_TIMER, vector, NULL);
	return 0;
}

SEC("tp_btf/local_timer_exit")
int BPF_PROG(layer_timer_exit, int vector)
{
	irq_ends(IRQ_TIMER);
	return 0;
}

SEC("tp_btf/call_function_single_entry")
int BPF_PROG(layer_call_entry, int vector)
{
	irq_begins(IRQ_CALL, vector, NULL);
	return 0;
}

SEC("tp_btf/call_function_single_exit")
int BPF_PROG(layer_call_exit, int vector)
{
	irq_ends(IRQ_CALL);
	return 0;
}
#endif
