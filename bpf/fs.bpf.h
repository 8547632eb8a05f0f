/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parts of file systems that have a tracepoint at their beginning and at their end: one
 * record each, made at the end.
 */
#include "include/layers.h"

static __always_inline void span_output(struct span_record *record)
{
	if (likely(slot_output_kind(record, RECORD_SPAN))) {
		COUNT(layers);
		COUNT(spans);
	} else {
		layer_lost(LOST_SPAN, record->ts_ns, record->dur_ns, record->pid, 0);
	}
}

static __always_inline void span_begins(__u32 kind)
{
	struct task_state *state = state_if_recorded(current_task());
	if (state && request_of(state))
		state->layers.span_ns[kind & (SPAN_KINDS - 1)] = bpf_ktime_get_ns();
}

static __always_inline void span_ends(__u32 kind)
{
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	if (!state)
		return;
	__u64 began = state->layers.span_ns[kind & (SPAN_KINDS - 1)];
	__u64 request = request_of(state);
	state->layers.span_ns[kind & (SPAN_KINDS - 1)] = 0;
	if (!began || !request || began < request)
		return;
	note_below(state);
	struct span_record record = {
		.span = kind,
		.file = state->file,
		.ts_ns = began,
		.dur_ns = bpf_ktime_get_ns() - began,
		.pid = READ_TYPED(task, tgid),
		.tid = READ_TYPED(task, pid),
		.request_ns = request,
	};
	span_output(&record);
}

SEC("tp_btf/ext4_sync_file_enter")
int BPF_PROG(layer_ext4_sync_enter, struct file *file, int datasync)
{
	if (layer_config.spans)
		span_begins(SPAN_EXT4_SYNC);
	return 0;
}

SEC("tp_btf/ext4_sync_file_exit")
int BPF_PROG(layer_ext4_sync_exit, struct inode *inode, int ret)
{
	span_ends(SPAN_EXT4_SYNC);
	return 0;
}

/* What the task submits from now on is of this operation. */
static __always_inline void submits_for(struct kiocb *iocb, bool waits)
{
	struct task_state *state = state_if_recorded(current_task());
	if (state)
		state->layers.iocb = waits ? 0 : *(volatile __u64 *)&iocb;
}

/* Direct I/O: of which operation it is, and how long it took if the task waits for it. */
SEC("tp_btf/iomap_dio_rw_begin")
int BPF_PROG(layer_dio_begin, struct kiocb *iocb, struct iov_iter *iter)
{
	bool waits = !iocb->ki_complete;
	submits_for(iocb, waits);
	if (waits && layer_config.spans)
		span_begins(SPAN_DIRECT);
	return 0;
}

SEC("tp_btf/iomap_dio_complete")
int BPF_PROG(layer_dio_complete, struct kiocb *iocb, int error, long ret)
{
	if (!iocb->ki_complete)
		span_ends(SPAN_DIRECT);
	return 0;
}

/* Of which operation it is, for kernels without these tracepoints (before 6.6). */
#define OPERATION_BEGINS(function)                                                                 \
	SEC("fentry/" #function)                                                                   \
	int BPF_PROG(operation_##function, struct kiocb *iocb)                                     \
	{                                                                                          \
		submits_for(iocb, !iocb->ki_complete);                                             \
		return 0;                                                                          \
	}

OPERATION_BEGINS(ext4_file_read_iter)
OPERATION_BEGINS(ext4_file_write_iter)
OPERATION_BEGINS(xfs_file_read_iter)
OPERATION_BEGINS(xfs_file_write_iter)
OPERATION_BEGINS(btrfs_file_read_iter)
OPERATION_BEGINS(btrfs_file_write_iter)
