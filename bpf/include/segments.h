/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bytes that a call asks for in several segments: struct iovec, struct msghdr.
 */
#ifndef FATHOM_SEGMENTS_H
#define FATHOM_SEGMENTS_H

#include "emit.h"

struct iov_sum {
	__u64 address;
	__u64 count;
	__u64 compat; /* segments of 8 bytes */
	__u64 sum;
};

/* What lies on the stack at a time: older kernels have little of it. */
enum { IOV_CHUNK = FATHOM_KERNEL >= 613 || !HAVE_LOOPS ? 8 : 4 };

/* A segment of more bytes than that is none that a program means: a sum of IOV_MAX
 * of them would not fit 63 bits. */
enum { SEGMENT_BITS = 53 };

/* Bytes of segment `i`, whose bits go to *all, too. */
static __always_inline __u64 segment_bytes(__u64 *iov, int i, bool compat, __u64 *all)
{
	__u64 bytes = compat ? iov[i] >> 32 : iov[2 * i + 1];
	*all |= bytes;
	return bytes;
}

/* Bytes that the first segments of a vector ask for, IOV_CHUNK of them at most;
 * NO_SIZE when they can't be read. */
__noinline __u64 iov_chunk(__u64 address, __u64 count, bool compat)
{
	/* struct iovec: base and length. */
	__u64 iov[2 * IOV_CHUNK];
	__u64 sum = 0, all = 0;
	__builtin_memset(iov, 0, sizeof(iov));
	__u64 bytes = count < IOV_CHUNK ? count : IOV_CHUNK;
	bytes *= compat ? 8 : 16;
	/* Compared right before the call: older verifiers do not carry bounds
	 * through the product. */
	barrier_var(bytes);
	if (bytes > sizeof(iov))
		bytes = sizeof(iov);
	if (bpf_probe_read_user(iov, bytes, (void *)address))
		return NO_SIZE;
#pragma unroll
	for (int i = 0; i < IOV_CHUNK; i++)
		/* Of a 32-bit program: both in one word. */
		sum += segment_bytes(iov, i, compat, &all);
	/* More than a sum of them can hold. */
	return all >> SEGMENT_BITS ? NO_SIZE : sum;
}

static long iov_step(__u64 index, struct iov_sum *s)
{
	__u64 done = index * IOV_CHUNK;
	if (done >= s->count)
		return 1;
	__u64 bytes =
		iov_chunk(s->address + (s->compat ? 8 : 16) * done, s->count - done, s->compat);
	s->sum = bytes == NO_SIZE ? NO_SIZE : s->sum + bytes;
	return bytes == NO_SIZE;
}

/* Bytes that a vector asks for; NO_SIZE when it can't be read. */
__noinline __u64 iov_bytes(__u64 address, __u64 count, bool compat)
{
	struct iov_sum s = { .address = address, .count = count, .compat = compat };
	if (count <= IOV_CHUNK)
		return iov_chunk(address, count, compat);
	if (count > IOV_MAX)
		return NO_SIZE;
	LOOP(IOV_MAX / IOV_CHUNK, iov_step, &s);
	return s.sum;
}

/* Bytes that the segments of a struct msghdr ask for; NO_SIZE when it can't be read. */
static __always_inline __u64 message_bytes(struct task_state *state, __u64 address, bool compat)
{
	/* Behind the name and its length. Into map memory, to leave the stack to iov_bytes(). */
	__u64 *vector = &state->args[6];
	if (bpf_probe_read_user(vector, 16, (void *)address + (compat ? 8 : 16)))
		return NO_SIZE;
	if (compat)
		return iov_bytes((__u32)vector[0], vector[0] >> 32, true);
	return iov_bytes(vector[0], vector[1], false);
}

#endif
