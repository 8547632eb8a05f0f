/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Number and arguments of a call, and how it is to be recorded.
 */
#ifndef FATHOM_REGISTERS_H
#define FATHOM_REGISTERS_H

#include "maps.h"

/* COMPAT_CALLS: calls of 32-bit programs are recorded, not only counted. */
#if defined(__TARGET_ARCH_x86)
enum { COMPAT_CALLS = HAVE_COMPAT_CALLS };

/* Of a 32-bit program: arch/x86/include/asm/syscall_wrapper.h,
 * SC_IA32_REGS_TO_ARGS. */
static __noinline __u64 compat_argument(struct pt_regs *regs, __u32 index)
{
	/* A table, as the verifier would follow each case of a switch. */
#define OFFSET(index, reg) ((__u64)bpf_core_field_offset(struct pt_regs, reg) << (8 * (index)))
	__u64 offsets = OFFSET(0, bx) | OFFSET(1, cx) | OFFSET(2, dx) | OFFSET(3, si) |
			OFFSET(4, di) | OFFSET(5, bp);
#undef OFFSET
	__u64 at = offsets >> (8 * (index & 7)) & 0xff;
	/* Registers so laid out that the one at `at` is where bx is. */
	__u64 moved = (__u64)regs + at - bpf_core_field_offset(struct pt_regs, bx);
	return (__u32)READ(KERNEL_OBJECT(pt_regs, moved), bx);
}

static __always_inline __u64 argument(struct pt_regs *regs, __u32 index, bool compat)
{
	if (unlikely(compat))
		return compat_argument(regs, index);
	switch (index) {
	case 0:
		return READ_TYPED(regs, di);
	case 1:
		return READ_TYPED(regs, si);
	case 2:
		return READ_TYPED(regs, dx);
	case 3:
		return READ_TYPED(regs, r10);
	case 4:
		return READ_TYPED(regs, r8);
	default:
		return READ_TYPED(regs, r9);
	}
}

static __always_inline __u32 syscall_number(struct pt_regs *regs)
{
	return READ_TYPED(regs, orig_ax);
}

static __always_inline bool is_compat(struct task_struct *task)
{
	return READ_TYPED(task, thread_info.status) & TS_COMPAT;
}
#else
enum { COMPAT_CALLS = 0 };

/* The barrier keeps the compiler from reading a register and an argument that was kept by one
 * instruction: the verifier refuses an instruction that reads two kinds of memory. */
static __always_inline __u64 argument(struct pt_regs *regs, __u32 index, bool compat)
{
	__u64 value;
	switch (index) {
	case 0:
		value = READ_TYPED(regs, orig_x0);
		break;
	case 1:
		value = READ_TYPED(regs, regs[1]);
		break;
	case 2:
		value = READ_TYPED(regs, regs[2]);
		break;
	case 3:
		value = READ_TYPED(regs, regs[3]);
		break;
	case 4:
		value = READ_TYPED(regs, regs[4]);
		break;
	default:
		value = READ_TYPED(regs, regs[5]);
	}
	barrier_var(value);
	return value;
}

static __always_inline __u32 syscall_number(struct pt_regs *regs)
{
	return READ_TYPED(regs, syscallno);
}

static __always_inline bool is_compat(struct task_struct *task)
{
	return task->thread_info.flags & (1UL << TIF_32BIT);
}
#endif

/* Whether seccomp may answer calls of `task` in the kernel's place: their entry is
 * not seen then. */
static __always_inline bool has_seccomp(struct task_struct *task)
{
	return bpf_core_field_exists(task->seccomp.mode) && READ_TYPED(task, seccomp.mode);
}

/* How to record call `number`. The barrier keeps the compiler from dropping the
 * mask, which the verifier wants to see. */
static __always_inline const volatile struct call_desc *desc_of(__u64 number, bool compat)
{
	if (compat)
		number += MAX_NUMBERS;
	barrier_var(number);
	return &descs[number & (2 * MAX_NUMBERS - 1)];
}

#endif
