/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Write-back of files that recorded tasks have mapped for writing: one record a
 * request in which a file system hands dirty pages to the block layer. Who hands
 * them over is the present task: a thread in msync or fsync, or one of the
 * kernel's workers.
 */
#include "include/emit.h"
#include "include/mappings.h"

/* include/linux/blk_types.h */
enum { REQ_OP_MASK = 255, REQ_OP_WRITE = 1 };

/* struct address_space pointers of pages have their kind in the lowest bits. */
enum { MAPPING_KINDS = 3 };

struct page_place {
	__u64 inode; /* 0: no page of a file on its way to the device */
	__u64 index; /* in the file, pages */
};

/* A folio and its pages lie in a block of less than this, and no page at the end
 * of the address space. */
#define MASK_BYTES (1ull << 30)

/* The address of the first page of the folio that a page belongs to. */
static __always_inline __u64 first_page(__u64 address)
{
	if (bpf_core_field_exists(struct page___info, compound_info)) {
		__u64 info = BPF_CORE_READ((struct page___info *)address, compound_info);
		if (!(info & 1))
			return address;
		return info > -MASK_BYTES ? address & info : info - 1;
	}
	__u64 head = BPF_CORE_READ((struct page *)address, compound_head);
	return head & 1 ? head - 1 : address;
}

/* Where a page of a request lies. */
static __always_inline struct page_place place_of_page(__u64 address)
{
	struct page_place place = {};
	__u64 first = first_page(address);
	struct page *folio = (struct page *)first;
	__u64 flags = 0;
	bpf_probe_read_kernel(&flags, 8, folio);
	/* The buffer of direct I/O may be a mapped file, too: such a page is not
	 * being written back. */
	if (!(flags >> bpf_core_enum_value(enum pageflags, PG_writeback) & 1))
		return place;
	__u64 mapping = (__u64)BPF_CORE_READ(folio, mapping);
	if (!mapping || mapping & MAPPING_KINDS)
		return place;
	if (bpf_core_field_exists(struct folio, index))
		place.index = BPF_CORE_READ((struct folio *)first, index);
	else
		place.index = BPF_CORE_READ(folio, index);
	place.index += (address - first) / bpf_core_type_size(struct page);
	place.inode = (__u64)BPF_CORE_READ((struct address_space *)mapping, host);
	return place;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(block_bio_queue, struct bio *bio)
{
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
	struct page_place begin = place_of_page((__u64)first.bv_page);
	if (!begin.inode)
		return 0;
	struct noted_inode *noted = bpf_map_lookup_elem(&noted_inodes, &begin.inode);
	struct inode *inode = (struct inode *)begin.inode;
	if (!noted || noted->ino != BPF_CORE_READ(inode, i_ino) ||
	    noted->generation != BPF_CORE_READ(inode, i_generation))
		return 0;
	struct page_place end = place_of_page((__u64)last.bv_page);
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
	struct call_record lost = {
		.syscall = LOST_WRITEBACK,
		.ts_ns = record.ts_ns,
		.pid = record.pid,
		.ret = record.bytes,
		.file = record.file,
	};
	lose(&lost, DESC_RET_BYTES);
	return 0;
}
