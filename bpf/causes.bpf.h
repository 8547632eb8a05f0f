/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who is to blame for I/O that others carry out: who made pages dirty, and whose changes
 * a journal commits.
 */
#include "include/layers.h"
#if HAVE_OPERATIONS
#include "include/operation_state.h"
#endif

#define PF_KTHREAD 0x00200000

/* Who made pages dirty last: of an inode, or of one page of a block device, as the
 * metadata of a file system lies in those. */
struct dirty_key {
	__u64 inode;
	__u64 page; /* from 1, 0 for an inode as a whole */
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536); /* 1 without this layer */
	__type(key, struct dirty_key);
	__type(value, struct request_key);
} dirtiers SEC(".maps");

/* Transactions of jbd2: who used a handle of it last. */
struct transaction_key {
	__u32 dev;
	__u32 number;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct transaction_key);
	__type(value, struct request_key);
} transactions SEC(".maps");

/* Threads of jbd2 that are committing a transaction, and for whom. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct request_key);
} committing SEC(".maps");

#if HAVE_OPERATIONS
/* The operation `key`, if it is recorded. */
static __always_inline bool operation_request(struct op_key *key, struct request_key *request)
{
	struct operation *op = bpf_map_lookup_elem(&operations, key);
	if (!op)
		return false;
	request->ns = op->ts_ns;
	request->tid = op->tid;
	request->pid = op->pid;
	request->file = op->file;
	return true;
}
#endif

/* The request that the task is working on: an operation that it submits or, as a
 * worker of io_uring, carries out; else its call or fault. */
static __always_inline void present_request(struct task_struct *task, struct task_state *state,
					    struct request_key *request)
{
#if HAVE_OPERATIONS
	if (task->flags & PF_IO_WORKER && bpf_core_type_exists(struct io_worker)) {
		struct io_worker *worker = task->worker_private;
		__u64 work = (__u64)BPF_CORE_READ(worker, cur_work);
		struct op_key key = {
			.owner = work - bpf_core_field_offset(struct io_kiocb, work),
		};
		if (work && operation_request(&key, request))
			return;
	}
#endif
	if (!state)
		return;
#if HAVE_OPERATIONS
	if (state->layers.iocb) {
		/* A request of io_uring begins with its struct kiocb. */
		struct op_key key = { .owner = state->layers.iocb };
		if (operation_request(&key, request))
			return;
		struct aio_kiocb *iocb = KERNEL_OBJECT(aio_kiocb, state->layers.iocb);
		key.owner = (__u64)READ(iocb, ki_ctx);
		key.id = READ(iocb, ki_res.obj);
		if (operation_request(&key, request))
			return;
	} else if (state->layers.op_ns) {
		request->ns = state->layers.op_ns;
		request->tid = READ_TYPED(task, pid);
		request->pid = READ_TYPED(task, tgid);
		return;
	}
#endif
	request->ns = request_of(state);
	if (state->enter_ns)
		request->file = state->file;
	request->tid = READ_TYPED(task, pid);
	request->pid = READ_TYPED(task, tgid);
}

static __always_inline bool is_block_device(__u64 inode)
{
	return (READ(KERNEL_OBJECT(inode, inode), i_mode) & S_IFMT) == S_IFBLK;
}

/* Page `index` of a file became dirty. */
static __always_inline int dirtied(struct address_space *mapping, __u64 index)
{
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	struct request_key by = {};
	if (!mapping)
		return 0;
	present_request(task, state, &by);
	__u64 inode = (__u64)READ_LINK(address_space, mapping, host);
	struct dirty_key key = { .inode = inode };
	if (is_block_device(inode))
		key.page = index + 1;
	if (!by.ns) {
		__u32 tid = READ_TYPED(task, pid);
		struct request_key *commit = NULL;
		/* The journal hands metadata on that it has committed. */
		if (READ_TYPED(task, flags) & PF_KTHREAD && key.page)
			commit = bpf_map_lookup_elem(&committing, &tid);
		if (commit)
			by = *commit;
		/* One who is not recorded is to blame from now on. */
		bpf_map_update_elem(&dirtiers, &key, &by, commit ? BPF_ANY : BPF_EXIST);
		return 0;
	}
	if (state) {
		struct layer_state *layers = &state->layers;
		layers->cache.dirtied++;
		if (layers->dirty_ns == by.ns && layers->dirty_inode == inode &&
		    layers->dirty_index == key.page)
			return 0;
		layers->dirty_ns = by.ns;
		layers->dirty_inode = inode;
		layers->dirty_index = key.page;
	}
	bpf_map_update_elem(&dirtiers, &key, &by, BPF_ANY);
	return 0;
}

SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(layer_dirty_folio, struct folio *folio, struct address_space *mapping)
{
	return dirtied(mapping, folio->index);
}

#if HAVE_OLD_PAGES
SEC("tp_btf/writeback_dirty_page")
int BPF_PROG(layer_dirty_page, struct page *page, struct address_space *mapping)
{
	return dirtied(mapping, page->index);
}
#endif

/* A change to metadata joins a transaction. */
SEC("tp_btf/jbd2_handle_start")
int BPF_PROG(layer_handle_start, __u32 dev, __u32 transaction)
{
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	struct request_key by = {};
	present_request(task, state, &by);
	if (!by.ns)
		return 0;
	if (state)
		state->layers.cache.handles++;
	struct transaction_key key = { .dev = dev, .number = transaction };
	bpf_map_update_elem(&transactions, &key, &by, BPF_ANY);
	return 0;
}

SEC("tp_btf/jbd2_start_commit")
int BPF_PROG(layer_start_commit, journal_t *journal, transaction_t *transaction)
{
	/* What tracepoints of modules pass may be null to newer verifiers. */
	if (!journal || !transaction)
		return 0;
	struct transaction_key key = {
		.dev = BPF_CORE_READ(journal, j_fs_dev, bd_dev),
		.number = BPF_CORE_READ(transaction, t_tid),
	};
	__u32 tid = READ_TYPED(current_task(), pid);
	struct request_key *by = bpf_map_lookup_elem(&transactions, &key);
	if (by)
		bpf_map_update_elem(&committing, &tid, by, BPF_ANY);
	return 0;
}

SEC("tp_btf/jbd2_end_commit")
int BPF_PROG(layer_end_commit, journal_t *journal, transaction_t *transaction)
{
	__u32 tid = READ_TYPED(current_task(), pid);
	bpf_map_delete_elem(&committing, &tid);
	return 0;
}
