/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a request does in the page cache, counted on its task until it ends. Pages are
 * added one by one, and looked up in batches that tell the whole range that the request
 * is after; so a page that is added waits until a lookup tells whether it was asked for.
 */
#ifndef FATHOM_CACHE_STATE_H
#define FATHOM_CACHE_STATE_H

#include "layers.h"

/* Counts the pages that were added: asked for, or ahead of that. */
static __always_inline void settle_added(struct layer_state *layers)
{
	__u64 first = layers->added_first, end = layers->added_end;
	if (first == end)
		return;
	__u64 pages = end - first;
	layers->added_first = layers->added_end = 0;
	if (!layers->lookups) {
		layers->added += pages;
		return;
	}
	if (first < layers->first)
		first = layers->first;
	if (end > layers->last + 1)
		end = layers->last + 1;
	__u64 missed = end > first ? end - first : 0;
	layers->missed += missed;
	layers->ahead += pages - missed;
}

/* Sends what the request that began at `request_ns` and ends now has done. Comes
 * before its own record in the order of time. */
__noinline int cache_output(__u64 request_ns, __u64 now, __u32 file)
{
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	if (!state)
		return 0;
	struct layer_state *layers = &state->layers;
	settle_added(layers);
	struct cache_record record = {
		.file = file,
		.handles = layers->handles,
		.request_ns = request_ns,
		.dur_ns = now - request_ns - (now > request_ns),
		.pid = READ_TYPED(task, tgid),
		.tid = READ_TYPED(task, pid),
		.first = layers->first,
		.pages = layers->lookups ? layers->last - layers->first + 1 : 0,
		.missed = layers->missed,
		.ahead = layers->ahead,
		.added = layers->added,
		.dirtied = layers->dirtied,
		.lookups = layers->lookups,
	};
	layers->lookups = layers->missed = layers->ahead = layers->added = layers->dirtied = 0;
	layers->handles = 0;
	if (likely(slot_output_kind(&record, RECORD_CACHE))) {
		COUNT(layers);
		COUNT(caches);
	} else {
		layer_lost(LOST_CACHE, request_ns, record.dur_ns, record.pid, 0);
	}
	return 0;
}

/* Whether the request has done anything in the page cache. */
static __always_inline bool cache_used(struct layer_state *layers)
{
	return layers->lookups | layers->dirtied | layers->handles ||
	       layers->added_first != layers->added_end || layers->added;
}

/* Forgets what the task did before the request that begins. */
static __always_inline void cache_reset(struct layer_state *layers)
{
	layers->lookups = layers->missed = layers->ahead = layers->added = layers->dirtied = 0;
	layers->handles = 0;
	layers->added_first = layers->added_end = 0;
}

#endif
