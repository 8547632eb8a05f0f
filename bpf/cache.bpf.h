/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lookups in the page cache by requests of recorded tasks; see cache_state.h.
 */
#include "include/cache_state.h"

static __always_inline void looked_up(struct address_space *mapping, __u64 first, __u64 last)
{
	struct task_state *state = state_if_recorded(current_task());
	if (!state || !request_of(state))
		return;
	struct layer_state *layers = &state->layers;
	if (!layers->lookups++) {
		layers->first = first;
		layers->last = last;
		layers->mapping = (__u64)mapping;
	} else if (last > layers->last) {
		/* What the request added ahead of a lookup before is what it asks for now. */
		__u64 from = layers->last + 1, to = last + 1;
		if (from < layers->ahead_first)
			from = layers->ahead_first;
		if (to > layers->ahead_end)
			to = layers->ahead_end;
		if (to > from) {
			layers->cache.missed += to - from;
			layers->cache.ahead -= to - from;
		}
		layers->last = last;
	}
	settle_added(layers);
}

SEC("tp_btf/mm_filemap_get_pages")
int BPF_PROG(layer_get_pages, struct address_space *mapping, unsigned long first,
	     unsigned long last)
{
	looked_up(mapping, first, last);
	return 0;
}

/* The whole range of a read, for kernels without that tracepoint (before 6.11). */
static __always_inline int reads(struct kiocb *iocb, struct iov_iter *iter)
{
	__u64 count = BPF_CORE_READ(iter, count);
	__u64 pos = iocb->ki_pos;
	if (count)
		looked_up(BPF_CORE_READ(iocb, ki_filp, f_mapping), pos >> layer_config.page_shift,
			  (pos + count - 1) >> layer_config.page_shift);
	return 0;
}

SEC("fentry/filemap_read")
int BPF_PROG(layer_filemap_read, struct kiocb *iocb, struct iov_iter *iter)
{
	return reads(iocb, iter);
}

#if HAVE_OLD_PAGES
/* Before 5.12. */
SEC("fentry/generic_file_buffered_read")
int BPF_PROG(layer_buffered_read, struct kiocb *iocb, struct iov_iter *iter)
{
	return reads(iocb, iter);
}
#endif

/* Of a folio of more than one page. */
static __always_inline __u32 folio_order(struct folio *folio)
{
	if (bpf_core_field_exists(struct folio___order, _folio_order))
		return BPF_CORE_READ((struct folio___order *)folio, _folio_order);
	return folio->_flags_1 & 255;
}

static __always_inline int pages_added(struct address_space *mapping, __u64 index, __u64 pages)
{
	struct task_state *state = state_if_recorded(current_task());
	if (!state || !request_of(state))
		return 0;
	struct layer_state *layers = &state->layers;
	if (layers->added_first != layers->added_end && index == layers->added_end &&
	    layers->added_mapping == (__u64)mapping) {
		layers->added_end += pages;
		return 0;
	}
	settle_added(layers);
	layers->added_first = index;
	layers->added_end = index + pages;
	layers->added_mapping = (__u64)mapping;
	return 0;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(layer_add_page, struct folio *folio)
{
	__u64 flags = 0;
	__u64 pages = 1;
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1)
		pages = 1ULL << (folio_order(folio) & 31);
	return pages_added(READ_LINK(folio, folio, mapping), folio->index, pages);
}

#if HAVE_OLD_PAGES
SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(layer_add_single_page, struct page *page)
{
	return pages_added(page->mapping, page->index, 1);
}
#endif
