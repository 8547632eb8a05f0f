/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Number and arguments of a call, and how it is to be recorded.
 */
#ifndef FATHOM_REGISTERS_H
#define FATHOM_REGISTERS_H

#include "maps.h"

#if defined(__TARGET_ARCH_x86)
static __always_inline __u64 argument(struct pt_regs *regs, __u32 index)
{
	switch (index) {
	case 0:
		return regs->di;
	case 1:
		return regs->si;
	case 2:
		return regs->dx;
	case 3:
		return regs->r10;
	case 4:
		return regs->r8;
	default:
		return regs->r9;
	}
}

static __always_inline __u32 syscall_number(struct pt_regs *regs)
{
	return regs->orig_ax;
}

static __always_inline bool is_compat(struct task_struct *task)
{
	return task->thread_info.status & TS_COMPAT;
}
#else
static __always_inline __u64 argument(struct pt_regs *regs, __u32 index)
{
	switch (index) {
	case 0:
		return regs->orig_x0;
	case 1:
		return regs->regs[1];
	case 2:
		return regs->regs[2];
	case 3:
		return regs->regs[3];
	case 4:
		return regs->regs[4];
	default:
		return regs->regs[5];
	}
}

static __always_inline __u32 syscall_number(struct pt_regs *regs)
{
	return regs->syscallno;
}

static __always_inline bool is_compat(struct task_struct *task)
{
	return false;
}
#endif

/* How to record call `number`. The barrier keeps the compiler from dropping the
 * mask, which the verifier wants to see. */
static __always_inline const volatile struct call_desc *desc_of(__u64 number)
{
	barrier_var(number);
	return &descs[number & (MAX_NUMBERS - 1)];
}

#endif
