/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pages of files on their way to a device or from it.
 */
#ifndef FATHOM_PAGES_H
#define FATHOM_PAGES_H

#include "compat.h"

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

/* Where a page of a request lies. The buffer of direct I/O may be a mapped file,
 * too: such a page is neither being written back nor still to be read. */
static __always_inline struct page_place place_of_page(__u64 address, bool read)
{
	struct page_place place = {};
	__u64 first = first_page(address);
	struct page *folio = (struct page *)first;
	__u64 flags = 0;
	bpf_probe_read_kernel(&flags, 8, folio);
	if (read ? flags >> bpf_core_enum_value(enum pageflags, PG_uptodate) & 1
		 : !(flags >> bpf_core_enum_value(enum pageflags, PG_writeback) & 1))
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

#endif
