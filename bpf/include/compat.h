/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels. The programs are compiled once for each row
 * below (crates/probe/build.rs); the loader takes the first object that the
 * running kernel can load, told by its features, not by its version.
 *
 *   FATHOM_KERNEL  since  what it uses
 *   613            6.13   stacks of their own for programs that call deeply
 *   602            6.2    bpf_rdonly_cast: kernel objects are read without a call
 *   517            5.17   bpf_loop, task storage, atomics that return a value
 *   508            5.8    none of these; BPF ring buffers and tp_btf only
 *
 * Everything else is written in terms of the macros here and of the task_state
 * functions in maps.h, so that a subject needs no #if of its own.
 */
#ifndef FATHOM_COMPAT_H
#define FATHOM_COMPAT_H

#include "kernel.h"

#include <bpf_helpers.h>
#include <bpf_core_read.h>
#include <bpf_tracing.h>

#ifndef FATHOM_KERNEL
#define FATHOM_KERNEL 613
#endif

#define HAVE_CASTS (FATHOM_KERNEL >= 602)
#define HAVE_LOOPS (FATHOM_KERNEL >= 517)
#define HAVE_TASK_STORAGE (FATHOM_KERNEL >= 517)
#define HAVE_FETCHING_ATOMICS (FATHOM_KERNEL >= 517)
#define HAVE_TYPED_CURRENT (FATHOM_KERNEL >= 517)
/* Linux 7.0 calls the programs of tracepoints with preemption on, and leaves a
 * program out while another task was preempted in it on the same CPU: all calls
 * on that CPU until that task goes on. Programs on classic tracepoints still run
 * with preemption off. They cost more, so they serve these kernels only. */
#define HAVE_CLASSIC (FATHOM_KERNEL >= 602)
#define HAVE_POINTERS_TO_GLOBALS (FATHOM_KERNEL >= 517)
/* Operations of io_uring and AIO; page faults on mapped files and write-back; the
 * content of calls; calls of 32-bit programs: all need loops over kernel objects, the
 * state of a task at any place, and atomics. */
#define HAVE_OPERATIONS HAVE_LOOPS
#define HAVE_FAULTS HAVE_LOOPS
#define HAVE_CONTENT HAVE_LOOPS
#define HAVE_COMPAT_CALLS HAVE_LOOPS
/* Calls of functions of libraries: they need cookies and task storage. */
#define HAVE_LIBRARY HAVE_TASK_STORAGE
/* Span contexts of threads: global functions that take pointers. */
#define HAVE_CONTEXTS HAVE_POINTERS_TO_GLOBALS
/* The layers below the calls: block, sched, irq, fs and the page cache. */
#define HAVE_LAYERS 1
/* Tracepoints of the block layer in the form that they had before 5.11. */
#define HAVE_OLD_BLOCK (FATHOM_KERNEL < 517)
/* Pages that became folios in 5.18. */
#define HAVE_OLD_PAGES (FATHOM_KERNEL < 602)

#if !HAVE_FETCHING_ATOMICS && !defined(__TARGET_ARCH_x86)
/* The first word of a slot must be written last, and other processors than
 * x86 need a barrier for that, which only these atomics give. */
#error "kernels before 5.17 are served on x86 only"
#endif

/* --- Reading kernel objects ---
 *
 * READ(pointer, member) reads through any pointer to a kernel object: one that
 * came out of another READ, or that was worked out from numbers. READ_TYPED is
 * for pointers whose type the verifier knows: current_task(), arguments of
 * programs, and what READ_TYPED gave. */
#define READ_BY_CALL(from, member)                                                                 \
	({                                                                                         \
		typeof(from) read_from = (from);                                                   \
		typeof(read_from->member) read_value;                                              \
		bpf_core_read(&read_value, sizeof(read_value), &read_from->member);                \
		read_value;                                                                        \
	})

#if HAVE_CASTS
/* Casts a number to a readable kernel object, without a call. Loads through it
 * cannot fault. */
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;

/* The numbers that the kernel's structures have. The loader adds them to the types
 * that it shows libbpf (crates/probe/src/kernel_types/reduced.rs). */
enum kernel_type {
	KERNEL_TYPE_address_space,
	KERNEL_TYPE_aio_kiocb,
	KERNEL_TYPE_file,
	KERNEL_TYPE_folio,
	KERNEL_TYPE_hlist_head,
	KERNEL_TYPE_inode,
	KERNEL_TYPE_io_kiocb,
	KERNEL_TYPE_kiocb,
	KERNEL_TYPE_pt_regs,
	KERNEL_TYPE_request,
	KERNEL_TYPE_socket,
	KERNEL_TYPE_task_struct,
	KERNEL_TYPE_vm_area_struct,
};
#define KERNEL_TYPE(type) bpf_core_enum_value(enum kernel_type, KERNEL_TYPE_##type)

#define KERNEL_OBJECT(type, address)                                                               \
	((struct type *)bpf_rdonly_cast((void *)(address), KERNEL_TYPE(type)))
#define READ(from, member) ((from)->member)
#else
#define KERNEL_OBJECT(type, address) ((struct type *)(address))
#define READ(from, member) READ_BY_CALL(from, member)
#endif

#if HAVE_TYPED_CURRENT
#define READ_TYPED(from, member) ((from)->member)
#else
#define READ_TYPED(from, member) READ_BY_CALL(from, member)
#endif

/* READ_LINK(type, pointer, member) is READ_TYPED for members that are pointers. What comes
 * out of an object that newer verifiers trust may be trusted as well, and to learn
 * that they search all names of types that the kernel has, several times for each
 * such load that they follow: most of the time that loading took. Nothing here
 * needs that trust. */
#if HAVE_CASTS
#define READ_LINK(type, from, member) (KERNEL_OBJECT(type, from)->member)
#else
#define READ_LINK(type, from, member) READ_TYPED(from, member)
#endif

/* The pointer to a `struct type` that lies at `address`. */
#if HAVE_CASTS
#define READ_POINTER(type, address)                                                                \
	KERNEL_OBJECT(type, KERNEL_OBJECT(hlist_head, (__u64)(address))->first)
#else
#define READ_POINTER(type, address)                                                                \
	({                                                                                         \
		struct type *read_pointer = NULL;                                                  \
		bpf_probe_read_kernel(&read_pointer, sizeof(read_pointer), (void *)(address));     \
		read_pointer;                                                                      \
	})
#endif

static __always_inline struct task_struct *current_task(void)
{
#if HAVE_TYPED_CURRENT
	return bpf_get_current_task_btf();
#else
	return (struct task_struct *)bpf_get_current_task();
#endif
}

/* The registers with which `task` entered the kernel; before 5.17 null where they
 * are not found. */
static __always_inline struct pt_regs *kernel_entry(struct task_struct *task)
{
#if FATHOM_KERNEL >= 517
	return (struct pt_regs *)bpf_task_pt_regs(task);
#else
	/* They lie at the top of the task's kernel stack, whose size only some
	 * debugging kernels change. */
	enum { STACK_BYTES = 16384 };
	__u64 stack = (__u64)READ_TYPED(task, stack);
	return stack ? (void *)(stack + STACK_BYTES - bpf_core_type_size(struct pt_regs)) : NULL;
#endif
}

/* The same for call `number`, which it has not left. */
static __always_inline struct pt_regs *task_registers(struct task_struct *task, __u32 number)
{
	struct pt_regs *regs = kernel_entry(task);
#if FATHOM_KERNEL < 517
	/* The number tells whether the place was right. */
	if (regs && READ_TYPED(regs, orig_ax) != number)
		return NULL;
#endif
	return regs;
}

/* --- Loops ---
 *
 * LOOP(times, step, context) calls `static long step(__u64 index, CONTEXT *)`
 * until it returns something else than 0, `times` times at most; its value is
 * the number of calls. Where there is no bpf_loop the verifier follows each turn:
 * for some hundred turns of a few branches. Longer ones: SCRATCH_LOOP (maps.h). */
#if HAVE_LOOPS
#define LOOP(times, step, context) bpf_loop(times, step, context, 0)
#else
#define LOOP(times, step, context)                                                                 \
	({                                                                                         \
		__u32 loop_turn = 0;                                                               \
		while (loop_turn < (times)) {                                                      \
			loop_turn++;                                                               \
			if (step(loop_turn - 1, context))                                          \
				break;                                                             \
		}                                                                                  \
		loop_turn;                                                                         \
	})
#endif

/* --- Functions that are verified once ---
 *
 * A function that takes pointers and is to be verified once, not at each call,
 * where the verifier can do that. Functions that take numbers only are plain
 * `__noinline` everywhere. */
#if HAVE_POINTERS_TO_GLOBALS
#define VERIFIED_ONCE __noinline
#else
#define VERIFIED_ONCE static __noinline
#endif

/* The same for functions that are called so deep that programs without stacks of their own
 * have no room for another frame: those take it in. */
#if FATHOM_KERNEL >= 613
#define VERIFIED_ONCE_DEEP VERIFIED_ONCE
#else
#define VERIFIED_ONCE_DEEP static __always_inline
#endif

/* --- Claiming ---
 *
 * Before 5.17 every program that claims something runs with preemption off and
 * other programs on its CPU can only interrupt it and run to their end in
 * between: what belongs to a CPU needs no atomic instructions there, as long as
 * the memory is written in the order of the source. */

/* Takes the flag at `busy`, which belongs to this CPU; false when it is taken. */
static __always_inline bool claim(__u32 *busy)
{
#if HAVE_FETCHING_ATOMICS
	return !__sync_lock_test_and_set(busy, 1);
#else
	if (*(volatile __u32 *)busy)
		return false;
	*(volatile __u32 *)busy = 1;
	return true;
#endif
}

static __always_inline void release(__u32 *busy)
{
#if HAVE_FETCHING_ATOMICS
	__sync_lock_test_and_set(busy, 0);
#else
	*(volatile __u32 *)busy = 0;
#endif
}

/* Takes the next number of a counter that belongs to this CPU. False when a
 * program that this one interrupts is about to take one, which cannot be where
 * there are atomics. `busy` guards the counter where there are none. */
static __always_inline bool claim_number(__u64 *counter, __u32 *busy, __u64 *number)
{
#if HAVE_FETCHING_ATOMICS
	*number = __sync_fetch_and_add(counter, 1);
	return true;
#else
	if (!claim(busy))
		return false;
	*number = *(volatile __u64 *)counter;
	*(volatile __u64 *)counter = *number + 1;
	release(busy);
	return true;
#endif
}

#endif
