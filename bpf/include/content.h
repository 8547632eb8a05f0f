/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bytes that a call moved: hashed here, or sent to be hashed or kept.
 *
 * They are read when the call returns. Then it is known how many there are, and
 * the memory is there, as the kernel has just read or written it; at entry, pages
 * that were never touched or that map a file would be missing. The price: when
 * another thread changes the memory while the call runs, what is read is what
 * it left there.
 *
 * All segments of a vector are one stream, which goes through pieces of
 * CONTENT_CHUNK bytes. The hash is XXH64 with seed 0.
 */
#ifndef FATHOM_CONTENT_H
#define FATHOM_CONTENT_H

#include "emit.h"

/* Where content lies: one stretch of memory, or a vector of them. */
struct content_source {
	__u64 address; /* next byte of the present stretch */
	__u64 left; /* bytes left in it */
	__u64 iov; /* next segment */
	__u64 segments; /* left to read */
	__u64 bytes; /* of content, all together */
};

/* State of a walk, in map memory, so that the verifier does not follow its
 * values through every turn of the loop. */
struct content_walk {
	struct content_source from;
	__u64 accumulators[4];
	__u64 want; /* bytes of content still to be read */
	__u64 done; /* bytes in the pieces before */
	__u32 at; /* bytes in the present piece */
	__u32 status; /* enum content_status, 0 while all is well */
};

/* One piece. The record stands before its bytes, so that both are sent at
 * once. The room behind a full piece is for the verifier, which cannot see that
 * what is read never goes beyond one. */
struct content_scratch {
	__u32 busy;
	__u32 reserved;
	struct content_walk walk;
	struct data_call_record record;
	__u8 data[2 * CONTENT_CHUNK + 32];
};

enum { CONTENT_SCRATCHES = 2 };
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set before loading: CONTENT_SCRATCHES a CPU */
	__type(key, __u32);
	__type(value, struct content_scratch);
} content_scratches SEC(".maps");

#define XXH_PRIME_1 0x9e3779b185ebca87ULL
#define XXH_PRIME_2 0xc2b2ae3d27d4eb4fULL
#define XXH_PRIME_3 0x165667b19e3779f9ULL
#define XXH_PRIME_4 0x85ebca77c2b2ae63ULL
#define XXH_PRIME_5 0x27d4eb2f165667c5ULL

static __always_inline __u64 rotate(__u64 value, int bits)
{
	return value << bits | value >> (64 - bits);
}

static __always_inline __u64 xxh_round(__u64 accumulator, __u64 input)
{
	return rotate(accumulator + input * XXH_PRIME_2, 31) * XXH_PRIME_1;
}

static __always_inline __u64 xxh_merge(__u64 hash, __u64 accumulator)
{
	return (hash ^ xxh_round(0, accumulator)) * XXH_PRIME_1 + XXH_PRIME_4;
}

#define XXH_STRIPE(in)                                                                             \
	do {                                                                                       \
		v1 = xxh_round(v1, (in)[0]);                                                       \
		v2 = xxh_round(v2, (in)[1]);                                                       \
		v3 = xxh_round(v3, (in)[2]);                                                       \
		v4 = xxh_round(v4, (in)[3]);                                                       \
	} while (0)

/* Takes the stripes of 32 bytes that the present piece holds. A global
 * function: the verifier checks it once. */
__noinline int content_stripes(struct content_scratch *scratch)
{
	if (!scratch)
		return 0;
	struct content_walk *w = &scratch->walk;
	__u64 v1 = w->accumulators[0], v2 = w->accumulators[1];
	__u64 v3 = w->accumulators[2], v4 = w->accumulators[3];
	__u32 stripes = w->at / 32;
	__u32 at = 0;
	/* Four at a time, without a test in between; then the rest. */
#pragma clang loop unroll(disable)
	for (; at + 4 <= CONTENT_CHUNK / 32; at += 4) {
		if (at + 4 > stripes)
			break;
		__u64 *in = (__u64 *)(scratch->data + 32 * at);
#pragma unroll
		for (int i = 0; i < 4; i++)
			XXH_STRIPE(in + 4 * i);
	}
	barrier_var(at);
#pragma clang loop unroll(disable)
	for (int i = 0; i < 3; i++) {
		if (at >= stripes)
			break;
		at &= CONTENT_CHUNK / 32 - 1;
		XXH_STRIPE((__u64 *)(scratch->data + 32 * at));
		at++;
	}
	w->accumulators[0] = v1;
	w->accumulators[1] = v2;
	w->accumulators[2] = v3;
	w->accumulators[3] = v4;
	return 0;
}

/* The hash, once the stripes of the last piece are taken. */
__noinline __u64 content_hash(struct content_scratch *scratch)
{
	if (!scratch)
		return 0;
	struct content_walk *w = &scratch->walk;
	__u64 total = w->done + w->at;
	__u64 hash = XXH_PRIME_5;
	if (total >= 32) {
		__u64 *v = w->accumulators;
		hash = rotate(v[0], 1) + rotate(v[1], 7) + rotate(v[2], 12) + rotate(v[3], 18);
		hash = xxh_merge(hash, v[0]);
		hash = xxh_merge(hash, v[1]);
		hash = xxh_merge(hash, v[2]);
		hash = xxh_merge(hash, v[3]);
	}
	hash += total;
	__u32 rest = w->at & 31;
	__u32 at = w->at - rest;
	barrier_var(at);
	at &= 2 * CONTENT_CHUNK - 1;
#pragma unroll
	for (int i = 0; i < 3; i++) {
		if (rest >= 8) {
			hash = rotate(hash ^ xxh_round(0, *(__u64 *)(scratch->data + at)), 27);
			hash = hash * XXH_PRIME_1 + XXH_PRIME_4;
			at += 8;
			rest -= 8;
		}
	}
	if (rest >= 4) {
		hash = rotate(hash ^ *(__u32 *)(scratch->data + at) * XXH_PRIME_1, 23);
		hash = hash * XXH_PRIME_2 + XXH_PRIME_3;
		at += 4;
		rest -= 4;
	}
#pragma unroll
	for (int i = 0; i < 3; i++) {
		if (rest) {
			hash = rotate(hash ^ scratch->data[at] * XXH_PRIME_5, 11) * XXH_PRIME_1;
			at++;
			rest--;
		}
	}
	hash = (hash ^ hash >> 33) * XXH_PRIME_2;
	hash = (hash ^ hash >> 29) * XXH_PRIME_3;
	return hash ^ hash >> 32;
}

/* Sends the record in the scratch with `len` bytes of the present piece. */
static __always_inline bool content_send(struct content_scratch *scratch, __u32 len)
{
	struct data_call_record *record = &scratch->record;
	barrier_var(len);
	len &= 2 * CONTENT_CHUNK - 1;
	record->at = scratch->walk.done;
	record->len = len;
	return wide_output_below(record, sizeof(*record) + len, 2 * CONTENT_CHUNK);
}

struct content_context {
	struct content_scratch *scratch;
};

/* Reads up to the end of the segment or of the piece. */
static long content_step(__u64 index, struct content_context *context)
{
	struct content_scratch *scratch = context->scratch;
	struct content_walk *w = &scratch->walk;
	if (!w->from.left) {
		__u64 segment[2];
		if (!w->from.segments ||
		    bpf_probe_read_user(segment, sizeof(segment), (void *)w->from.iov)) {
			w->status = CONTENT_UNREADABLE;
			return 1;
		}
		w->from.iov += sizeof(segment);
		w->from.segments--;
		w->from.address = segment[0];
		w->from.left = segment[1];
		return 0;
	}
	__u32 at = w->at;
	__u64 n = CONTENT_CHUNK - at;
	if (n > w->from.left)
		n = w->from.left;
	if (n > w->want)
		n = w->want;
	barrier_var(at);
	at &= CONTENT_CHUNK - 1;
	barrier_var(n);
	n &= 2 * CONTENT_CHUNK - 1;
	if (n > CONTENT_CHUNK ||
	    bpf_probe_read_user(scratch->data + at, n, (void *)w->from.address)) {
		w->status = CONTENT_UNREADABLE;
		return 1;
	}
	w->from.address += n;
	w->from.left -= n;
	w->want -= n;
	w->at = at + n;
	if (!w->want)
		return 1;
	if (w->at == CONTENT_CHUNK) {
		if (config.content == CONTENT_MODE_HASH) {
			content_stripes(scratch);
		} else if (!content_send(scratch, CONTENT_CHUNK)) {
			w->status = CONTENT_NO_ROOM;
			return 1;
		}
		w->done += CONTENT_CHUNK;
		w->at = 0;
	}
	return 0;
}

static __always_inline struct content_scratch *content_scratch_get(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	for (__u32 i = 0; i < CONTENT_SCRATCHES; i++) {
		__u32 key = cpu * CONTENT_SCRATCHES + i;
		struct content_scratch *s = bpf_map_lookup_elem(&content_scratches, &key);
		if (s && !__sync_lock_test_and_set(&s->busy, 1))
			return s;
	}
	return NULL;
}

/* Every turn of the loop ends a segment or a piece, or reads a segment. */
enum { CONTENT_STEPS = 2 * IOV_MAX + MAX_CONTENT / CONTENT_CHUNK + 2 };
/* Of the first bytes: of so many segments at most. */
enum { BEGINNING_STEPS = 64 };

/* Whether the ring has room for so many bytes of content. What remains is for
 * records of files and tasks, without which calls have no names. */
static __always_inline bool content_has_room(__u64 bytes)
{
	__u32 cpu = bpf_get_smp_processor_id();
	void *ring = bpf_map_lookup_elem(&wide_rings, &cpu);
	return ring && bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) + bytes < config.content_room;
}

/* Sends the first bytes that `call` moved, config.spans at most, ahead of its own record. What is missing is
 * known by the record that does not come. */
static __always_inline void beginning_output(struct call_record *call, struct content_source *from)
{
	__u64 want = from->bytes < config.spans ? from->bytes : config.spans;
	if (!content_has_room(want))
		return;
	struct content_scratch *scratch = content_scratch_get();
	if (!scratch)
		return;
	struct content_walk *w = &scratch->walk;
	struct data_call_record *record = &scratch->record;
	record->call = *call;
	record->call.kind = RECORD_CONTENT_PART;
	__builtin_memset(&record->cache, 0, sizeof(record->cache));
	record->entry_pos = 0;
	record->hash = 0;
	record->status = CONTENT_BEGINNING;
	record->content_bytes = from->bytes;
	w->from = *from;
	w->want = want;
	w->done = 0;
	w->at = 0;
	w->status = 0;
	struct content_context context = { .scratch = scratch };
	bpf_loop(BEGINNING_STEPS, content_step, &context, 0);
	if (!w->status && w->at)
		content_send(scratch, w->at);
	__sync_lock_test_and_set(&scratch->busy, 0);
}

/* Sends `call`, which moved data, with its content; false when there is no room
 * for both: it can still be sent without. */
static __always_inline bool content_output(struct call_record *call, struct cache_facts *cache,
					   __s64 entry_pos, struct content_source *from)
{
	__u64 want = from->bytes < config.content_max ? from->bytes : config.content_max;
	if (!content_has_room(config.content == CONTENT_MODE_HASH ? sizeof(struct data_call_record)
								  : want))
		return false;
	struct content_scratch *scratch = content_scratch_get();
	if (!scratch)
		return false;
	struct content_walk *w = &scratch->walk;
	struct data_call_record *record = &scratch->record;
	record->call = *call;
	record->call.kind = RECORD_CONTENT_PART;
	record->cache = *cache;
	record->entry_pos = entry_pos;
	record->hash = 0;
	record->status = config.content == CONTENT_MODE_PLAIN ? CONTENT_PLAIN : CONTENT_TO_HASH;
	w->from = *from;
	w->accumulators[0] = XXH_PRIME_1 + XXH_PRIME_2;
	w->accumulators[1] = XXH_PRIME_2;
	w->accumulators[2] = 0;
	w->accumulators[3] = -XXH_PRIME_1;
	w->want = want;
	w->done = 0;
	w->at = 0;
	w->status = 0;
	record->content_bytes = want;
	struct content_context context = { .scratch = scratch };
	bpf_loop(CONTENT_STEPS, content_step, &context, 0);

	if (w->want)
		w->status = w->status ? w->status : CONTENT_UNREADABLE;
	__u32 len = w->at;
	if (w->status) {
		record->status = w->status;
		len = 0;
	} else if (config.content == CONTENT_MODE_HASH) {
		content_stripes(scratch);
		record->hash = content_hash(scratch);
		record->status = CONTENT_HASHED;
		len = 0;
	}
	record->call.kind = RECORD_DATA_CALL;
	bool sent = content_send(scratch, len);
	__sync_lock_test_and_set(&scratch->busy, 0);
	return sent;
}

#endif
