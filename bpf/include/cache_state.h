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
	/* Of another file, as sendfile() writes what it reads. */
	if (!layers->lookups || layers->mapping != layers->added_mapping) {
		layers->cache.added += pages;
		return;
	}
	__u64 ahead = first > layers->last ? first : layers->last + 1;
	if (end > ahead) {
		if (ahead != layers->ahead_end)
			layers->ahead_first = ahead;
		layers->ahead_end = end;
	}
	if (first < layers->first)
		first = layers->first;
	if (end > layers->last + 1)
		end = layers->last + 1;
	__u64 missed = end > first ? end - first : 0;
	layers->cache.missed += missed;
	layers->cache.ahead += pages - missed;
}

/* Whether the request has done anything in the page cache. */
static __always_inline bool cache_used(struct layer_state *layers)
{
	return layers->lookups | layers->cache.dirtied | layers->cache.handles ||
	       layers->added_first != layers->added_end || layers->cache.added;
}

/* The request ends: brings what is known of it up to date. */
static __always_inline void cache_settle(struct layer_state *layers)
{
	settle_added(layers);
	layers->cache.pages = layers->lookups ? layers->last - layers->first + 1 : 0;
}

/* Forgets what the task did before the request that begins. */
static __always_inline void cache_reset(struct layer_state *layers)
{
	static const struct cache_facts none;
	layers->lookups = 0;
	layers->cache = none;
	layers->added_first = layers->added_end = 0;
	layers->ahead_first = layers->ahead_end = 0;
}

/* Whether the call and what it did in the page cache fit a slot together. */
static __always_inline bool fits_cached_call(struct call_record *call, struct cache_facts *cache)
{
	__u64 middle = call->size << (64 - SEGMENTS_SHIFT) >> (64 - SEGMENTS_SHIFT + 32);
	__u32 most = cache->pages | cache->missed | cache->ahead | cache->added | cache->dirtied |
		     cache->handles;
	bool size = call->size == NO_SIZE || (!middle && (__u32)call->size != NO_SIZE32);
	return !(call->dur_ns >> 32) && call->ret == (__s32)call->ret &&
	       call->fd == (__s16)call->fd && size && !(most >> 16);
}

enum cached_call { CACHED_NO_ROOM, CACHED_SENT, CACHED_TOO_LARGE };

/* Sends the call that `state` holds with what it did in the page cache: enum cached_call. */
VERIFIED_ONCE int cached_call_output(struct task_state *state)
{
	if (!state)
		return CACHED_NO_ROOM;
	struct call_record *call = &state->call;
	struct cache_facts *cache = &state->layers.cache;
	cache_settle(&state->layers);
	if (!fits_cached_call(call, cache))
		return CACHED_TOO_LARGE;
	__u8 lap;
	struct slot *slot = slot_claim(&lap);
	if (!slot)
		return CACHED_NO_ROOM;
	struct cached_call_record *record = (void *)slot;
	__u16 segments = call->size == NO_SIZE ? 0 : call->size >> SEGMENTS_SHIFT;
	record->ts_ns = call->ts_ns;
	record->dur_ns = call->dur_ns;
	record->ret = call->ret;
	record->pid = call->pid;
	record->tid = call->tid;
	record->file = call->file;
	record->aux = call->aux;
	record->offset = call->offset;
	record->size = call->size;
	record->pages = cache->pages;
	record->missed = cache->missed;
	record->ahead = cache->ahead;
	record->added = cache->added;
	record->dirtied = cache->dirtied;
	record->handles = cache->handles;
	slot_commit(slot, first_word(RECORD_CACHED_CALL | lap, call,
				     (__u16)call->fd | (__u32)segments << 16));
	return CACHED_SENT;
}

#endif
