/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lookups in the page cache by requests of recorded tasks; see cache_state.h.
 */
#include "include/cache_state.h"

SEC("tp_btf/mm_filemap_get_pages")
int BPF_PROG(layer_get_pages, struct address_space *mapping, unsigned long first,
	     unsigned long last)
{
	struct task_state *state = task_state_of(current_task());
	if (!state || !request_of(state))
		return 0;
	struct layer_state *layers = &state->layers;
	if (!layers->lookups++) {
		layers->first = first;
		layers->last = last;
	} else if (last > layers->last) {
		layers->last = last;
	}
	settle_added(layers);
	return 0;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(layer_add_page, struct folio *folio)
{
	struct task_state *state = task_state_of(current_task());
	if (!state || !request_of(state))
		return 0;
	struct layer_state *layers = &state->layers;
	__u64 index = folio->index;
	__u64 flags = 0;
	__u64 pages = 1;
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1)
		pages = 1ULL << (folio->_flags_1 & 31);
	if (layers->added_first != layers->added_end && index == layers->added_end) {
		layers->added_end += pages;
		return 0;
	}
	settle_added(layers);
	layers->added_first = index;
	layers->added_end = index + pages;
	return 0;
}
