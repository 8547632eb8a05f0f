/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records of calls on their way out, and what is counted when there is no room.
 */
#ifndef FATHOM_EMIT_H
#define FATHOM_EMIT_H

#include "maps.h"

/* Without branches: the verifier would follow each of them through all that comes after. */
static __always_inline __u32 log2_bucket(__u64 value)
{
	__u64 bucket = 0;
#pragma unroll
	for (int half = 5; half >= 0; half--) {
		/* Below 0 unless the upper half is 0. */
		__u64 sign = -(value >> (1 << half));
		barrier_var(sign);
		__u64 shift = sign >> 63 << half;
		bucket += shift;
		value >>= shift;
	}
	return bucket < HIST_BUCKETS ? bucket : HIST_BUCKETS - 1;
}

/* Atomic unless nothing else on the CPU that the sum belongs to may add to it meanwhile. */
static __always_inline void add_to(__u64 *sum, __u64 more, bool alone)
{
	if (alone)
		*sum += more;
	else
		__sync_fetch_and_add(sum, more);
}

static __always_inline void add_call(struct shed_value *v, struct call_record *call, __u64 bytes,
				     bool alone)
{
	__u64 end = call->ts_ns + call->dur_ns;
	add_to(&v->count, 1, alone);
	add_to(&v->bytes, bytes, alone);
	add_to(&v->dur_ns, call->dur_ns, alone);
	if (v->max_dur_ns < call->dur_ns)
		v->max_dur_ns = call->dur_ns;
	if (!v->first_at_ns)
		v->first_at_ns = end;
	v->last_at_ns = end;
	__u32 bucket = log2_bucket(call->dur_ns);
	if (bucket < HIST_BUCKETS)
		add_to(&v->hist[bucket], 1, alone);
}

/* Whether a call that returns `ret` has failed. */
static __always_inline bool is_error(__u32 desc_flags, __s64 ret)
{
	return ret < 0 && (!(desc_flags & DESC_RET_ADDR) || ret >= -4095);
}

/* Counts a call whose record found no room: exactly by CPU and call, and by
 * process and file as long as the map has room for that. */
VERIFIED_ONCE int lose(struct call_record *call, __u32 desc_flags)
{
	if (!call)
		return 0;
	__u32 cpu = bpf_get_smp_processor_id();
	__u32 index = cpu * MAX_SYSCALLS + (call->syscall & (MAX_SYSCALLS - 1));
	bool pending = call->flags & CALL_PENDING;
	bool error = !pending && is_error(desc_flags, call->ret);
	/* Asked with size 0, getxattr and listxattr return the size that there is. */
	bool moves = !pending && !error && desc_flags & DESC_RET_BYTES && call->size;
	__u64 bytes = moves ? call->ret : 0;
	COUNT(lost);
	struct shed_value *v = bpf_map_lookup_elem(&lost, &index);
	if (v) {
		/* No branch, as above. */
		__sync_fetch_and_add(&v->errors, error);
		add_call(v, call, bytes, false);
	}
	struct shed_key key = {
		.cpu = cpu,
		.syscall = call->syscall,
		.pid = call->pid,
		.file = call->file,
	};
	v = bpf_map_lookup_elem(&shed, &key);
	if (!v) {
		static const struct shed_value zero;
		bpf_map_update_elem(&shed, &key, &zero, BPF_NOEXIST);
		v = bpf_map_lookup_elem(&shed, &key);
	}
	if (v) {
		__sync_fetch_and_add(&v->errors, error);
		add_call(v, call, bytes, false);
	} else {
		COUNT(shed_overflow);
	}
	return 0;
}

/* The same for what is no call: `what` is LOST_FAULT or LOST_WRITEBACK, `ret` below 0
 * stands for a failure, else for bytes when `desc_flags` has DESC_RET_BYTES. */
static __always_inline void lose_other(__u32 what, __u64 ts_ns, __u64 dur_ns, __u32 pid, __u32 file,
				       __s64 ret, __u32 desc_flags)
{
	struct call_record call = {
		.syscall = what,
		.ts_ns = ts_ns,
		.dur_ns = dur_ns,
		.pid = pid,
		.ret = ret,
		.file = file,
		.size = NO_SIZE,
	};
	lose(&call, desc_flags);
}

/* The sums that a call belongs to, by process and file as long as the map has room for
 * that; `rest` are those of all calls of its kind. */
static __always_inline struct counted_value *counted_of(struct call_record *call,
							struct counted_value *rest)
{
	struct shed_key key = {
		.cpu = bpf_get_smp_processor_id() | (counting_side & COUNTED_SIDE),
		.syscall = call->syscall,
		.pid = call->pid,
		.file = call->file,
	};
	struct counted_value *value = bpf_map_lookup_elem(&counted, &key);
	if (likely(value))
		return value;
	/* What is slow goes on from the other side, if user space has not taken it yet. */
	key.cpu ^= COUNTED_SIDE;
	struct counted_value *before = bpf_map_lookup_elem(&counted, &key);
	__u64 limit = before ? before->limit : rest ? rest->limit : 0;
	key.cpu ^= COUNTED_SIDE;
	static const struct counted_value zero;
	bpf_map_update_elem(&counted, &key, &zero, BPF_NOEXIST);
	value = bpf_map_lookup_elem(&counted, &key);
	if (!value)
		return rest;
	value->limit = limit;
	return value;
}

static __always_inline struct counted_value *counted_rest_of(struct call_record *call)
{
	__u32 index =
		bpf_get_smp_processor_id() * MAX_SYSCALLS + (call->syscall & (MAX_SYSCALLS - 1));
	return bpf_map_lookup_elem(&counted_rest, &index);
}

/* `alone`: the call is a system call, not an operation, which may end in an interrupt and
 * then adds to sums that another one is adding to. */
static __always_inline void add_counted(struct counted_value *value, struct call_record *call,
					__u32 desc_flags, bool alone)
{
	bool error = is_error(desc_flags, call->ret);
	bool moves = !error && desc_flags & DESC_RET_BYTES && call->size;
	if (error)
		add_to(&value->sums.errors, 1, alone);
	add_call(&value->sums, call, moves ? call->ret : 0, alone);
}

/* Adds a call to its own sums `value`, or to those of all calls of its kind, `rest`. */
static __always_inline void add_to_sums(struct counted_value *value, struct counted_value *rest,
					struct call_record *call, __u32 desc_flags, bool alone)
{
	bool sole = alone && value != rest;
	/* Otherwise the compiler takes `rest` where the two are equal, and verifiers before 6.2
	 * do not see that it is no null pointer either. */
	barrier_var(value);
	if (sole)
		add_counted(value, call, desc_flags, true);
	else
		add_counted(value, call, desc_flags, false);
}

/* Counts a call that has returned, by process and file: instead of its record. */
VERIFIED_ONCE int count_call(struct call_record *call, __u32 desc_flags, bool alone)
{
	if (!call)
		return 0;
	struct counted_value *rest = counted_rest_of(call);
	struct counted_value *value = counted_of(call, rest);
	if (value)
		add_to_sums(value, rest, call, desc_flags, alone);
	return 0;
}

/* Whether a call takes longer than usual: longer than about 127 of 128 calls like it. The
 * limit, in 1/256 ns, goes up by 1/16 with each call beyond it and down by 1/2048 with each
 * other one, so it follows what the calls do. The first call sets it. */
static __always_inline bool is_slow(struct counted_value *value, __u64 dur_ns)
{
	__u64 limit = value->limit, taken = (dur_ns | 1) << 8;
	if (!limit) {
		value->limit = 2 * taken;
		return false;
	}
	bool slow = taken > limit;
	value->limit = slow ? limit + (limit >> 4) : limit - (limit >> 11);
	return slow;
}

/* Of a process' calls of a kind on a file one in so many tells what is slow for all calls of
 * that kind. */
enum { REST_SAMPLE = 16 };

/* Whether a call belongs to the sample of those that are not slow. Its time is at hand, and mixed
 * as MurmurHash3 does at its end it is as good as a random number: times of calls in a loop are
 * about equally far apart, and the bits of a mere product would follow that. */
static __always_inline bool is_sampled(struct call_record *call, struct tail_control *control)
{
	__u64 bits = call->ts_ns;
	bits = (bits ^ bits >> 33) * 0xFF51AFD7ED558CCDULL;
	bits = (bits ^ bits >> 33) * 0xC4CEB9FE1A85EC53ULL;
	return (__u32)(bits ^ bits >> 33) < control->sample_below;
}

/* With config.tail: counts a call that has returned, if it is one of those that get no
 * record; whether it was. `noted`: something happened below it. */
VERIFIED_ONCE int counted_instead(struct call_record *call, __u32 desc_flags, __u32 noted,
				  bool alone)
{
	struct tail_control *control = tail_control();
	if (!call || !control || control->mode == TAIL_ALL)
		return 0;
	struct counted_value *rest = counted_rest_of(call);
	struct counted_value *value = counted_of(call, rest);
	if (!value)
		return 0;
	if (control->mode == TAIL_SLOW) {
		bool slow = control->slow_ns && call->dur_ns >= control->slow_ns;
		if (!control->slow_ns) {
			slow = is_slow(value, call->dur_ns);
			if (rest && rest != value && !(value->sums.count & (REST_SAMPLE - 1)))
				is_slow(rest, call->dur_ns);
		}
		if (slow || noted || is_error(desc_flags, call->ret) || is_sampled(call, control))
			return 0;
	}
	add_to_sums(value, rest, call, desc_flags, alone);
	return 1;
}

/* Claims the next slot of the CPU's ring, null when there is no room. `lap`: what the first
 * byte of the record has besides its kind. */
static __always_inline struct slot *slot_claim(__u8 *lap)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct slot_cursor *cursor = bpf_map_lookup_elem(&cursors, &cpu);
	if (!cursor)
		return NULL;
	/* The margin leaves room for programs that interrupt each other between
	 * the test and the claim. */
	if (cursor->head - *(volatile __u64 *)&cursor->tail >= config.slots - 8)
		return NULL;
	__u64 position;
	if (!claim_number(&cursor->head, &cursor->busy, &position))
		return NULL;
	*lap = position & config.slots ? 0 : SLOT_LAP;
	__u32 index = cpu * config.slots + ((__u32)position & (config.slots - 1));
	return bpf_map_lookup_elem(&slots, &index);
}

/* Writes the first word of a slot, which is the last of it to be written: user space takes a
 * slot once its SLOT_LAP is that of the turn. */
static __always_inline void slot_commit(struct slot *slot, __u64 first)
{
#if defined(__TARGET_ARCH_x86)
	/* Stores keep their order. */
	*(volatile __u64 *)&slot->words[0] = first;
#else
	/* An exchange is a full barrier; BPF has no lighter one everywhere. */
	__sync_lock_test_and_set(&slot->words[0], first);
#endif
}

/* Puts a record into the CPU's slot ring; false when there is no room. All
 * records of slots have the beginning of struct call_record. */
static __always_inline bool slot_output_kind(void *record, __u8 kind)
{
	__u8 lap;
	struct slot *slot = slot_claim(&lap);
	if (!slot)
		return false;
	*(__u8 *)record = kind | lap;
	__u64 *from = record;
#pragma unroll
	for (int i = 1; i < SLOT_BYTES / 8; i++)
		slot->words[i] = from[i];
	slot_commit(slot, from[0]);
	return true;
}

/* The first word of a call's record in a slot. It is put together in a register: the processor
 * waits when a word is read that was just written in pieces. */
static __always_inline __u64 first_word(__u8 kind, struct call_record *call, __u32 rest)
{
	return kind | (__u32)call->flags << 8 | (__u32)call->syscall << 16 | (__u64)rest << 32;
}

static __always_inline bool slot_output(struct call_record *call)
{
	__u8 lap;
	struct slot *slot = slot_claim(&lap);
	if (!slot)
		return false;
	struct call_record *record = (void *)slot;
	record->ts_ns = call->ts_ns;
	record->dur_ns = call->dur_ns;
	record->pid = call->pid;
	record->tid = call->tid;
	record->ret = call->ret;
	record->file = call->file;
	record->aux = call->aux;
	record->offset = call->offset;
	record->size = call->size;
	slot_commit(slot, first_word(RECORD_CALL | lap, call, call->fd));
	return true;
}

#endif
