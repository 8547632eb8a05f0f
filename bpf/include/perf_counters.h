/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters of perf over requests (--counters). Each counts on one CPU, for whoever runs
 * there. What it has when the request begins, or comes back to a CPU, is taken from what
 * it has when the request leaves the CPU or ends; so what others do meanwhile is not the
 * request's, while interrupts that it is stopped for are.
 *
 * perf gives a counter of the processor to several who want it in turns. One that was
 * not there all the time has counted a part nobody knows how large, and is not told.
 */
#ifndef FATHOM_PERF_COUNTERS_H
#define FATHOM_PERF_COUNTERS_H

#include "layers.h"

/* include/uapi/linux/bpf.h */
struct bpf_perf_event_value {
	__u64 counter;
	__u64 enabled;
	__u64 running;
};

/* Counter i on each CPU: [i * config.cpus + CPU]. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1); /* set before loading */
	__type(key, __u32);
	__type(value, __u32);
} perf_events SEC(".maps");

/* Reads all counters of this CPU: as those that the task begins with here, or adds what
 * they have grown by since. */
VERIFIED_ONCE int perf_read(struct perf_state *perf, __u32 begins)
{
	if (!perf)
		return 0;
	__u32 cpu = bpf_get_smp_processor_id();
	for (__u32 i = 0; i < MAX_COUNTERS; i++) {
		if (i >= config.perf_values)
			break;
		struct bpf_perf_event_value now = {};
		if (bpf_perf_event_read_value(&perf_events, i * config.cpus + cpu, &now,
					      sizeof(now))) {
			perf->unknown |= 1 << i;
			continue;
		}
		__u64 lag = now.enabled - now.running;
		if (begins) {
			perf->base[i] = now.counter;
			perf->lag[i] = lag;
		} else {
			perf->sum[i] += now.counter - perf->base[i];
			if (lag != perf->lag[i])
				perf->unknown |= 1 << i;
		}
	}
	return 0;
}

/* A request begins. */
static __always_inline void perf_begins(struct perf_state *perf)
{
	perf->unknown = 0;
	__builtin_memset(perf->sum, 0, sizeof(perf->sum));
	perf->stage = PERF_ON;
	perf_read(perf, 1);
}

/* The request ends, unless counting did not begin with it. */
static __always_inline void perf_ends(struct perf_state *perf)
{
	if (perf->stage == PERF_ON) {
		perf_read(perf, 0);
	} else if (perf->stage == PERF_OFF) {
		/* That it came back was not seen. */
		perf->unknown = ~0;
	} else {
		perf->stage = PERF_NOT;
		return;
	}
	perf->stage = PERF_ENDED;
}

/* Sends what was counted, if it was: when the record of the request has gone out. */
VERIFIED_ONCE int perf_output(struct perf_state *perf, __u64 request_ns, __u64 dur_ns, __u32 pid,
			      __u32 tid)
{
	if (!perf || perf->stage != PERF_ENDED)
		return 0;
	perf->stage = PERF_NOT;
	struct counters_record record = {
		.unknown = perf->unknown,
		.counters = config.perf_counters,
		.tid = tid,
		.request_ns = request_ns,
		.dur_ns = dur_ns + 1,
	};
	__builtin_memcpy(record.values, perf->sum, sizeof(record.values));
	if (likely(slot_output_kind(&record, RECORD_COUNTERS))) {
		COUNT(layers);
		COUNT(counters);
	} else {
		layer_lost(LOST_COUNTERS, request_ns, dur_ns, pid, 0);
	}
	return 0;
}

#endif
