/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Page faults on mapped files: one record a fault, made at its end.
 *
 * The beginning is a tracepoint, on arm64 a function. For the end there is neither,
 * but the kernel counts a fault as minor or major when it has dealt with it, and that
 * count is a software event of perf: a program on each of the two sees address and
 * kind, in the context of the task. A fault that is tried again has one beginning and one
 * end. One that fails has no end; SIGBUS tells of it. Faults that the kernel
 * resolves for a caller of its own (get_user_pages, of O_DIRECT for instance) have
 * neither beginning nor end.
 */
#include "include/emit.h"
#include "include/perf_counters.h"
#include "include/mappings.h"
#if HAVE_LAYERS
#include "include/cache_state.h"
#endif

#if defined(__TARGET_ARCH_x86)
enum { USER_REGS_WORDS = 21 };
#else
enum { USER_REGS_WORDS = 34 };
#endif

/* include/uapi/linux/bpf_perf_event.h */
struct bpf_perf_event_data {
	__u64 regs[USER_REGS_WORDS];
	__u64 sample_period;
	__u64 addr;
};

/* arch/x86/include/asm/trap_pf.h */
enum { PF_PROT = 1, PF_WRITE = 2, PF_USER = 4, PF_INSTR = 16 };

enum { SIGBUS = 7, SIGINFO_ADDR = 16 };

/* Inodes of mapped files that recorded tasks may have written to, for
 * writeback.bpf.h. */
struct noted_inode {
	__u64 ino;
	__u32 generation;
	__u32 handle;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct noted_inode);
} noted_inodes SEC(".maps");

/* Notes the inode of a file whose pages the task may make dirty. */
static __always_inline void note_inode(struct fault_state *fault, struct file *file, __u32 handle)
{
	struct inode *inode = READ(file, f_inode);
	__u64 key = (__u64)inode;
	if (fault->noted_inode == key)
		return;
	struct noted_inode noted = {
		.ino = READ(inode, i_ino),
		.generation = READ(inode, i_generation),
		.handle = handle,
	};
	bpf_map_update_elem(&noted_inodes, &key, &noted, BPF_ANY);
	fault->noted_inode = key;
}

/* The record of the fault that `state` holds, if it was on a file. `held`: the
 * kernel is in the fault and keeps the mapping. */
static __always_inline int record_fault(struct task_struct *task, struct task_state *state,
					__u64 address, __u64 now, __u32 flags, bool held)
{
	struct fault_state *fault = &state->fault;
	bool busy = false;
	/* How long it took is not known when only one of its ends was seen. */
	if (filter.min_dur_ns &&
	    (flags & (FAULT_NO_BEGIN | FAULT_NO_END) || now - fault->began_ns < filter.min_dur_ns))
		return 0;
	__u64 found = mapping_at(task, fault, address, held, &busy);
	if (!found) {
		if (busy)
			COUNT(faults_unknown);
		return 0;
	}
	struct vm_area_struct *vma = KERNEL_OBJECT(vm_area_struct, found);
	struct file *file = mapped_file(vma);
	if (!file)
		return 0;
	if (filter.file_types && !type_passes(READ(file, f_inode), file_mode(file)))
		return 0;
	if (filters(1 << RULE_PATH) &&
	    cached_file(state, file, now, false)->verdict == VERDICT_LEFT)
		return 0;
	struct fault_record record = {
		.ts_ns = now,
		.pid = task->tgid,
		.tid = task->pid,
		.address = address,
		.offset = mapped_offset(vma, address),
	};
	if (flags & FAULT_NO_BEGIN) {
		record.dur_ns = 0;
	} else {
		if (fault->error_code & PF_WRITE)
			flags |= FAULT_WRITE;
		else if (fault->error_code & PF_INSTR)
			flags |= FAULT_EXEC;
		if (fault->error_code & PF_PROT)
			flags |= FAULT_PRESENT;
		if (!(fault->error_code & PF_USER))
			flags |= FAULT_KERNEL;
		record.ts_ns = fault->began_ns;
		record.dur_ns = now - fault->began_ns;
		if (fault->around) {
			record.around_from =
				(fault->around_first << fault_config.page_shift) - record.offset;
			record.around_bytes = (fault->around_last - fault->around_first + 1)
					      << fault_config.page_shift;
		}
	}
	__u64 vm_flags = READ(vma, vm_flags);
	if (vm_flags & VM_MAYSHARE)
		flags |= FAULT_SHARED;
	if (config.detail != DETAIL_RAW) {
		record.file = handle_of(state, file, now);
		if (fault_config.writeback && vm_flags & VM_SHARED && vm_flags & VM_MAYWRITE)
			note_inode(fault, file, record.file);
	}
	record.flags = flags;
#if HAVE_LAYERS
	/* In the course of a call it is the call's. */
	if (layer_config.counts && !state->enter_ns && !(flags & FAULT_NO_BEGIN) &&
	    cache_used(&state->layers)) {
		struct cache_facts *cache = &state->layers.cache;
		cache_settle(&state->layers);
		record.added = cache->added + cache->missed + cache->ahead;
		record.dirtied = cache->dirtied < 0xffff ? cache->dirtied : 0xffff;
		record.handles = cache->handles < 0xffff ? cache->handles : 0xffff;
	}
#endif
	if (likely(slot_output_kind(&record, RECORD_FAULT))) {
		COUNT(faults);
		if (record.added | record.dirtied | record.handles)
			COUNT(caches);
		/* In the course of a call it is the call's. */
		if (config.perf_counters && !state->enter_ns)
			perf_output(&state->perf, record.ts_ns, record.dur_ns, record.pid,
				    record.tid);
		return 0;
	}
	COUNT(faults_lost);
	lose_other(LOST_FAULT, record.ts_ns, record.dur_ns, record.pid, record.file,
		   flags & FAULT_FAILED ? -1 : 0, 0);
	return 0;
}

static __always_inline struct task_state *recorded(struct task_struct *task)
{
	struct task_state *state = state_if_recorded(task);
	return is_recorded(state) ? state : NULL;
}

static __always_inline int fault_begins(__u64 address, __u64 error_code)
{
	struct task_struct *task = current_task();
	struct task_state *state = recorded(task);
	/* Where faults are off (a program of ours that reads user memory, for
	 * instance) the kernel does not deal with them. */
	if (!state || task->pagefault_disabled)
		return 0;
	struct fault_state *fault = &state->fault;
	__u64 now = bpf_ktime_get_ns();
	fault->address = address;
	fault->error_code = error_code;
	fault->around = 0;
	fault->began_ns = now;
#if HAVE_LAYERS
	if (layer_config.counts && !state->enter_ns)
		cache_reset(&state->layers);
#endif
	if (config.perf_counters && !state->enter_ns)
		perf_begins(&state->perf);
	if (!fault_config.ends && !filter.errors_only)
		record_fault(task, state, address, now, FAULT_NO_END, false);
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(page_fault_user, unsigned long address, struct pt_regs *regs, unsigned long error_code)
{
	return fault_begins(address, error_code);
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(page_fault_kernel, unsigned long address, struct pt_regs *regs,
	     unsigned long error_code)
{
	return fault_begins(address, error_code);
}

#if defined(__TARGET_ARCH_arm64)
/* arch/arm64/include/asm/esr.h: why the processor could not go on. */
enum { ESR_CLASS_SHIFT = 26, ESR_CLASS_MASK = 0x3f };
enum { ESR_CODE_OF_USER = 0x20, ESR_CODE_OF_KERNEL = 0x21, ESR_DATA_OF_USER = 0x24 };
enum { ESR_WRITE = 1 << 6, ESR_CACHE_MAINTENANCE = 1 << 8 };
enum {
	ESR_STATUS_TYPE = 0x3c,
	ESR_STATUS_TRANSLATION = 0x04,
	ESR_STATUS_ACCESS_FLAG = 0x08,
	ESR_STATUS_PERMISSION = 0x0c,
};

/* These kernels have no tracepoint there, and what deals with page faults alone lets no
 * program hook it. */
SEC("fentry/do_mem_abort")
int BPF_PROG(page_fault_function, unsigned long address, unsigned long esr)
{
	__u32 status = esr & ESR_STATUS_TYPE;
	if (status != ESR_STATUS_TRANSLATION && status != ESR_STATUS_ACCESS_FLAG &&
	    status != ESR_STATUS_PERMISSION)
		return 0;
	__u32 class = esr >> ESR_CLASS_SHIFT & ESR_CLASS_MASK;
	__u64 error_code = 0;
	if (class == ESR_CODE_OF_USER || class == ESR_CODE_OF_KERNEL)
		error_code |= PF_INSTR;
	else if (esr & ESR_WRITE && !(esr & ESR_CACHE_MAINTENANCE))
		error_code |= PF_WRITE;
	if (class == ESR_CODE_OF_USER || class == ESR_DATA_OF_USER)
		error_code |= PF_USER;
	if (status == ESR_STATUS_PERMISSION)
		error_code |= PF_PROT;
	/* The processor leaves a tag in the highest byte out. */
	return fault_begins((__s64)(address << 8) >> 8, error_code);
}
#endif

/* The pages of the range that are in the page cache were mapped along. */
SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(mm_filemap_map_pages, struct address_space *mapping, unsigned long first,
	     unsigned long last)
{
	struct task_state *state = state_if_recorded(current_task());
	if (!state || !state->fault.began_ns)
		return 0;
	state->fault.around_first = first;
	state->fault.around_last = last;
	state->fault.around = 1;
	return 0;
}

static __always_inline int fault_ends(__u64 address, __u32 flags)
{
	struct task_struct *task = current_task();
	struct task_state *state = recorded(task);
	if (!state)
		return 0;
	struct fault_state *fault = &state->fault;
	if (filter.errors_only) {
		fault->began_ns = 0;
		return 0;
	}
	__u64 now = bpf_ktime_get_ns();
	if (!fault->began_ns || fault->address != address)
		flags |= FAULT_NO_BEGIN;
	if (config.perf_counters && !state->enter_ns) {
		if (flags & FAULT_NO_BEGIN)
			state->perf.stage = PERF_NOT;
		else
			perf_ends(&state->perf);
	}
	record_fault(task, state, address, now, flags, true);
	fault->began_ns = 0;
	return 0;
}

SEC("perf_event")
int page_fault_minor(struct bpf_perf_event_data *ctx)
{
	return fault_ends(ctx->addr, 0);
}

SEC("perf_event")
int page_fault_major(struct bpf_perf_event_data *ctx)
{
	return fault_ends(ctx->addr, FAULT_MAJOR);
}

/* A fault that failed: beyond the end of the file, or the page can't be read. One
 * in the kernel ends the call with EFAULT instead, and has no record. */
SEC("tp_btf/signal_generate")
int BPF_PROG(signal_generate, int sig, struct kernel_siginfo *info, struct task_struct *target)
{
	if (sig != SIGBUS)
		return 0;
	struct task_struct *task = current_task();
	struct task_state *state = recorded(task);
	if (!state || !state->fault.began_ns || target->pid != task->pid)
		return 0;
	__u64 address = 0;
	/* Numbers below a page stand for signals without a description. */
	if (bpf_probe_read_kernel(&address, 8, (void *)info + SIGINFO_ADDR) ||
	    address != state->fault.address)
		return 0;
	record_fault(task, state, address, bpf_ktime_get_ns(), FAULT_FAILED, false);
	state->fault.began_ns = 0;
	return 0;
}
