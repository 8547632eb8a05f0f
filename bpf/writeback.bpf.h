/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Write-back of files that recorded tasks have mapped for writing: one record a
 * request in which a file system hands dirty pages to the block layer. Who hands
 * them over is the present task: a thread in msync or fsync, or one of the
 * kernel's workers.
 */
#include "include/emit.h"
#include "include/filter.h"
#include "include/mappings.h"
#include "include/pages.h"

SEC("tp_btf/block_bio_queue")
int BPF_PROG(block_bio_queue, struct bio *bio)
{
	/* None fails here. */
	if (filter.errors_only)
		return 0;
	__u32 segments = bio->bi_vcnt;
	/* Copies that stacked devices make have no segments of their own. */
	if ((bio->bi_opf & REQ_OP_MASK) != REQ_OP_WRITE || !segments)
		return 0;
	struct bio_vec first = {}, last = {};
	__u64 vector = (__u64)BPF_CORE_READ(bio, bi_io_vec);
	if (bpf_probe_read_kernel(&first, sizeof(first), (void *)vector) ||
	    bpf_probe_read_kernel(&last, sizeof(last),
				  (void *)vector + (segments - 1) * sizeof(last)))
		return 0;
	struct page_place begin = place_of_page((__u64)first.bv_page, false);
	if (!begin.inode)
		return 0;
	struct noted_inode *noted = bpf_map_lookup_elem(&noted_inodes, &begin.inode);
	struct inode *inode = (struct inode *)begin.inode;
	if (!noted || noted->ino != BPF_CORE_READ(inode, i_ino) ||
	    noted->generation != BPF_CORE_READ(inode, i_generation))
		return 0;
	struct page_place end = place_of_page((__u64)last.bv_page, false);
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	__u64 offset = (begin.index << fault_config.page_shift) + first.bv_offset;
	__u64 behind = (end.index << fault_config.page_shift) + last.bv_offset + last.bv_len;
	struct writeback_record record = {
		.kind = RECORD_WRITEBACK,
		.file = noted->handle,
		.ts_ns = bpf_ktime_get_ns(),
		.pid = task->tgid,
		.tid = task->pid,
		.offset = offset,
		.bytes = bio->bi_iter.bi_size,
	};
	if (end.inode == begin.inode && behind - offset == record.bytes)
		record.flags |= WRITEBACK_CONTIGUOUS;
	if (state && state->enter_ns && !(state->flags & TASK_WAITS_FOR_EXEC)) {
		record.flags |= WRITEBACK_IN_CALL;
		record.syscall = desc_of(state->number, state->call_flags & STASH_COMPAT)->syscall;
	}
	bpf_probe_read_kernel(record.comm, sizeof(record.comm), task->comm);
	if (wide_output(&record, sizeof(record))) {
		COUNT(writebacks);
		return 0;
	}
	COUNT(writebacks_lost);
	lose_other(LOST_WRITEBACK, record.ts_ns, 0, record.pid, record.file, record.bytes,
		   DESC_RET_BYTES);
	return 0;
}
