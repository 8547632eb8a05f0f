/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From an address to the file that is mapped there.
 */
#ifndef FATHOM_MAPPINGS_H
#define FATHOM_MAPPINGS_H

#include "files.h"

#define VM_SHARED 0x8 /* and it may be written */
#define VM_MAYSHARE 0x80 /* shared, of a descriptor for reading only too */
#define VM_MAYWRITE 0x20
#define EBUSY 16

/* Nodes of a maple tree: address and type in one word. */
enum {
	MAPLE_NODE_MASK = 255,
	MAPLE_TYPE_SHIFT = 3,
	MAPLE_TYPE_MASK = 15,
	MAPLE_LEAF_64 = 1,
	MAPLE_RANGE_64 = 2,
	MAPLE_ARANGE_64 = 3,
	MAPLE_PIVOTS = 15,
	MAPLE_APIVOTS = 9,
	MAPLE_DEPTH = 10,
};

struct mapping_walk {
	__u64 *pivots; /* not on the stack, of which older kernels have little */
	__u64 address; /* that is looked for */
	__u64 entry; /* the node that is looked at next, or what was found */
};

/* One level of a tree of mappings. */
static long mapping_step(__u64 depth, struct mapping_walk *walk)
{
	__u64 *pivots = walk->pivots;
	__u64 entry = walk->entry;
	__u64 address = walk->address;
	__u32 type = (entry >> MAPLE_TYPE_SHIFT) & MAPLE_TYPE_MASK;
	__u64 node = entry & ~(__u64)MAPLE_NODE_MASK;
	__u64 slots;
	__u32 index = 0;
	walk->entry = 0;
	__builtin_memset(pivots, 0, 8 * MAPLE_PIVOTS);
	if (type == MAPLE_ARANGE_64) {
		__u64 at = node + bpf_core_field_offset(struct maple_arange_64, pivot);
		slots = node + bpf_core_field_offset(struct maple_arange_64, slot);
		if (bpf_probe_read_kernel(pivots, 8 * MAPLE_APIVOTS, (void *)at))
			return 1;
	} else if (type == MAPLE_RANGE_64 || type == MAPLE_LEAF_64) {
		__u64 at = node + bpf_core_field_offset(struct maple_range_64, pivot);
		slots = node + bpf_core_field_offset(struct maple_range_64, slot);
		if (bpf_probe_read_kernel(pivots, 8 * MAPLE_PIVOTS, (void *)at))
			return 1;
	} else {
		return 1;
	}
	/* Pivots are the last addresses of the slots; 0 behind the end. Those below
	 * `address` are counted without a branch, as the verifier would follow all
	 * combinations. Not unrolled: the sums of all turns would lie on the stack. */
#pragma clang loop unroll(disable)
	for (int i = 0; i < MAPLE_PIVOTS; i++) {
		__u64 last = pivots[i] - 1;
		index += ((last - (address - 1)) & ~last) >> 63;
	}
	if (bpf_probe_read_kernel(&entry, 8, (void *)slots + 8 * index))
		return 1;
	walk->entry = entry;
	return type == MAPLE_LEAF_64;
}

/* The mapping at `address` by a walk through the tree of mappings, without a
 * lock; 0 when there is none or the tree changed meanwhile. What it finds holds
 * for as long as the caller keeps the mapping: a fault does so while it is being
 * handled. bpf_find_vma() would take the lock of the whole address space, which
 * threads that fault at the same time do not share otherwise, and fails when
 * somebody waits for it. */
__noinline __u64 walk_mappings(__u64 mm, __u64 address)
{
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	if (!state)
		return 0;
	struct mapping_walk walk = { .pivots = state->fault.pivots, .address = address };
	if (!bpf_core_field_exists(struct mm_struct, mm_mt))
		return 0;
	bpf_probe_read_kernel(&walk.entry, 8,
			      (void *)mm + bpf_core_field_offset(struct mm_struct, mm_mt.ma_root));
	/* The lowest bits of the root are 10 when it is a node. */
	if ((walk.entry & 3) != 2 || walk.entry <= 4096)
		return 0;
	bpf_loop(MAPLE_DEPTH, mapping_step, &walk, 0);
	__u64 entry = walk.entry;
	if (!entry || entry & 3)
		return 0;
	struct vm_area_struct *vma = (struct vm_area_struct *)entry;
	if (BPF_CORE_READ(vma, vm_start) > address || BPF_CORE_READ(vma, vm_end) <= address ||
	    (__u64)BPF_CORE_READ(vma, vm_mm) != mm)
		return 0;
	return entry;
}

struct vma_context {
	__u64 vma;
};

static long note_vma(struct task_struct *task, struct vm_area_struct *vma,
		     struct vma_context *context)
{
	context->vma = (__u64)vma;
	return 0;
}

/* Counts the changes to the mappings of the present task; 0 when the kernel (before
 * 6.4) does not. A mapping can't be changed while a fault on it is being handled,
 * so what was found at the same count still holds there. */
static __always_inline __u32 mapping_changes(struct task_struct *task)
{
	struct mm_struct *mm = READ_LINK(task_struct, task, mm);
	struct mm_struct___counter *older = (void *)mm;
	__u32 sequence = 0;
	if (bpf_core_field_exists(mm->mm_lock_seq))
		sequence = mm->mm_lock_seq.sequence;
	else if (bpf_core_field_exists(older->mm_lock_seq))
		sequence = BPF_CORE_READ(older, mm_lock_seq);
	return sequence;
}

/* The mapping of the present task at `address`, 0 when there is none or it can't
 * be looked up; the second sets *busy. `held`: the kernel is in a fault there and
 * keeps the mapping. */
static __always_inline __u64 mapping_at(struct task_struct *task, struct fault_state *fault,
					__u64 address, bool held, bool *busy)
{
	struct vma_context context = {};
	if (held) {
		__u32 changes = mapping_changes(task);
		if (likely(fault->mm == (__u64)READ_LINK(task_struct, task, mm) &&
			   changes == fault->mm_sequence && address >= fault->vma_start &&
			   address < fault->vma_end))
			return fault->vma;
		/* Read as a number, which is what a global function takes. */
		__u64 mm = (__u64)BPF_CORE_READ(task, mm);
		__u64 found = walk_mappings(mm, address);
		if (likely(found)) {
			struct vm_area_struct *vma = KERNEL_OBJECT(vm_area_struct, found);
			fault->mm = changes ? mm : 0;
			fault->mm_sequence = changes;
			fault->vma = found;
			fault->vma_start = READ(vma, vm_start);
			fault->vma_end = READ(vma, vm_end);
			return found;
		}
	}
	*busy = bpf_find_vma(task, address, note_vma, &context, 0) == -EBUSY;
	return context.vma;
}

/* "dev/zero": what the kernel calls the file behind shared memory without a file.
 * No name in a directory has a slash. */
#define SHARED_ANONYMOUS_NAME 0x6f72657a2f766564ULL

/* The file of a mapping, null when it is memory only. */
static __always_inline struct file *mapped_file(struct vm_area_struct *vma)
{
	struct file *file = READ(vma, vm_file);
	if (!file)
		return NULL;
	struct dentry *dentry = READ(file, f_path.dentry);
	if (READ(dentry, d_name.hash_len) >> 32 == 8) {
		__u64 name = 0;
		bpf_probe_read_kernel(&name, 8, READ(dentry, d_name.name));
		if (name == SHARED_ANONYMOUS_NAME)
			return NULL;
	}
	return file;
}

/* The byte of the mapped file that `address` stands for. */
static __always_inline __s64 mapped_offset(struct vm_area_struct *vma, __u64 address)
{
	return (READ(vma, vm_pgoff) << fault_config.page_shift) + (address - READ(vma, vm_start));
}

#endif
