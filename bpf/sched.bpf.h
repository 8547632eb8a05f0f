/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler: one record a time that a recorded task was off the CPU, made when it is
 * back.
 */
#include "include/waits.h"

static __always_inline int switched(bool preempted, struct task_struct *prev,
				    struct task_struct *next, unsigned int prev_state)
{
	struct task_state *state = task_state_of(prev);
	__u64 now = bpf_ktime_get_ns();
	/* That it came back was not seen: the kernel may leave programs out. */
	if (state && state->layers.out_ns) {
		note_below(state);
		wait_ends(prev, &state->layers, now, WAIT_UNSEEN);
	}
	if (is_recorded(state)) {
		__u64 request = request_of(state);
		__u32 why = preempted ? 0 : prev_state;
		if (request || records_all_waits())
			wait_begins(prev, &state->layers, now, request, why);
		if (why)
			state->layers.op_ns = 0;
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
	return switched(preempted, prev, next, kernel_state(prev));
}

enum { SOFTIRQ_NET_TX = 2, SOFTIRQ_NET_RX = 3 };

/* The present task if it is in a call on a socket whose other end is on this host, else 0: the
 * network's softirq runs on its CPU, and carries over what it sends. */
static __always_inline __u32 local_sender(void)
{
	struct task_struct *task = current_task();
	struct pt_regs *regs = kernel_entry(task);
	if (!regs || READ_TYPED(task, flags) & (PF_KTHREAD | PF_IO_WORKER))
		return 0;
	__u32 number = syscall_number(regs);
	bool compat = is_compat(task);
	if (number >= MAX_NUMBERS || compat || !are_of_call(regs, false))
		return 0;
	const volatile struct call_desc *desc = desc_of(number, false);
	if (!desc->known || desc->fd == NO_ARG)
		return 0;
	struct file *file = file_of_fd(task, argument(regs, desc->fd, false));
	if (!file || (READ(READ(file, f_inode), i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	struct socket *socket = KERNEL_OBJECT(socket, (__u64)READ(file, private_data));
	struct sock *sock = READ(socket, sk);
	if (!sock)
		return 0;
	bool local = false;
	__u32 family = READ(sock, __sk_common.skc_family);
	if (family == AF_INET) {
		__u32 peer = READ(sock, __sk_common.skc_daddr);
		local = peer &&
			(peer == READ(sock, __sk_common.skc_rcv_saddr) || (peer & 0xff) == 127);
	} else if (family == AF_INET6) {
		__u64 peer[2] = {}, own[2] = {};
		bpf_core_read(peer, sizeof(peer), &sock->__sk_common.skc_v6_daddr);
		bpf_core_read(own, sizeof(own), &sock->__sk_common.skc_v6_rcv_saddr);
		local = peer[0] == own[0] && peer[1] == own[1];
	}
	return local ? READ_TYPED(task, pid) : 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(layer_waking, struct task_struct *task)
{
	struct task_state *state = task_state_of(task);
	if (!state || !state->layers.out_ns || state->layers.wake_ns)
		return 0;
	struct layer_state *layers = &state->layers;
	layers->wake_ns = bpf_ktime_get_ns();
	if (READ_TYPED(task, thread_info.flags) & (1UL << TIF_SIGPENDING))
		layers->out_flags |= WAIT_SIGNAL;
	struct irq_state *irq = irq_state();
	if (irq && irq->depth) {
		__u32 type = irq->type & (IRQ_TYPES - 1);
		__u32 number = irq->number[type];
		/* Whoever is on the CPU has nothing to do with it. */
		layers->out_flags |= WAIT_BY_INTERRUPT;
		layers->waker = type << 16 | (number & 0xffff);
		__builtin_memcpy(layers->waker_comm, irq->name, sizeof(irq->name));
		if (type == IRQ_SOFT) {
			bool network = number == SOFTIRQ_NET_RX || number == SOFTIRQ_NET_TX;
			*(__u32 *)layers->waker_comm =
				network && irq->depth == 1 ? local_sender() : 0;
		}
		return 0;
	}
	struct task_struct *waker = current_task();
	layers->waker = READ_TYPED(waker, pid);
	bpf_probe_read_kernel(layers->waker_comm, sizeof(layers->waker_comm), waker->comm);
	return 0;
}

/* From 5.19 on. A spinning task does not sleep. */
SEC("tp_btf/contention_begin")
int BPF_PROG(layer_contention_begin, void *lock, unsigned int flags)
{
	if (flags & LCB_F_SPIN)
		return 0;
	struct task_state *state = task_state_of(current_task());
	if (state)
		state->layers.lock = (__u64)lock;
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(layer_contention_end, void *lock, int ret)
{
	struct task_state *state = task_state_of(current_task());
	if (state && state->layers.lock == (__u64)lock)
		state->layers.lock = 0;
	return 0;
}
