/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From where in its program a call was made (--stacks): the registers and the first
 * bytes of the thread's stack, from which user space finds the functions with the
 * tables that compilers write for exceptions. Libraries of systems have no frame
 * pointers, which is why the kernel's own walk is not used: it would leave out the
 * function that called them.
 *
 * Taken when the call has been recorded, by a program that runs behind the one that
 * does, so that it is no part of the call's time: the stack of a thread in the kernel
 * does not change.
 */
#include "include/layers.h"
#include "include/registers.h"

SEC("tp_btf/sys_exit")
int BPF_PROG(call_stack, struct pt_regs *regs, long ret)
{
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	if (!state || !state->stack_ns)
		return 0;
	__u64 began = state->stack_ns, now = bpf_ktime_get_ns();
	state->stack_ns = 0;
	struct scratch *scratch = scratch_get();
	if (!scratch) {
		layer_lost(LOST_STACK, now, 0, READ_TYPED(task, tgid), 0);
		return 0;
	}
	struct stack_record *record = (void *)scratch->data;
	__builtin_memset(record, 0, sizeof(*record));
	record->kind = RECORD_STACK;
	record->ts_ns = now;
	record->request_ns = began;
	record->pid = READ_TYPED(task, tgid);
	record->tid = READ_TYPED(task, pid);
#if defined(__TARGET_ARCH_x86)
	record->ip = READ_TYPED(regs, ip);
	record->sp = READ_TYPED(regs, sp);
	record->fp = READ_TYPED(regs, bp);
#else
	record->ip = READ_TYPED(regs, pc);
	record->sp = READ_TYPED(regs, sp);
	record->fp = READ_TYPED(regs, regs[29]);
	record->lr = READ_TYPED(regs, regs[30]);
#endif
	/* Less at the very end of the stack. */
	void *bytes = scratch->data + sizeof(*record);
	if (!bpf_probe_read_user(bytes, STACK_BYTES, (void *)record->sp))
		record->bytes = STACK_BYTES;
	else if (!bpf_probe_read_user(bytes, STACK_BYTES / 4, (void *)record->sp))
		record->bytes = STACK_BYTES / 4;
	__u32 pid = record->pid;
	bool sent = wide_output(scratch->data, sizeof(*record) + record->bytes);
	scratch_put(scratch);
	if (!sent)
		layer_lost(LOST_STACK, now, 0, pid, 0);
	return 0;
}
