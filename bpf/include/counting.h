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
#ifndef FATHOM_COUNTING_H
#define FATHOM_COUNTING_H

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
VERIFIED_ONCE int counting_read(struct counting_state *counting, __u32 begins)
{
	if (!counting)
		return 0;
	__u32 cpu = bpf_get_smp_processor_id();
	for (__u32 i = 0; i < MAX_COUNTERS; i++) {
		if (i >= config.perf_values)
			break;
		struct bpf_perf_event_value now = {};
		if (bpf_perf_event_read_value(&perf_events, i * config.cpus + cpu, &now,
					      sizeof(now))) {
			counting->unknown |= 1 << i;
			continue;
		}
		__u64 lag = now.enabled - now.running;
		if (begins) {
			counting->base[i] = now.counter;
			counting->lag[i] = lag;
		} else {
			counting->sum[i] += now.counter - counting->base[i];
			if (lag != counting->lag[i])
				counting->unknown |= 1 << i;
		}
	}
	return 0;
}

/* A request begins. */
static __always_inline void counting_begins(struct counting_state *counting)
{
	counting->unknown = 0;
	__builtin_memset(counting->sum, 0, sizeof(counting->sum));
	counting->stage = COUNTING_ON;
	counting_read(counting, 1);
}

/* The request ends, unless counting did not begin with it. */
static __always_inline void counting_ends(struct counting_state *counting)
{
	if (counting->stage == COUNTING_ON) {
		counting_read(counting, 0);
	} else if (counting->stage == COUNTING_OFF) {
		/* That it came back was not seen. */
		counting->unknown = ~0;
	} else {
		counting->stage = COUNTING_NOT;
		return;
	}
	counting->stage = COUNTING_ENDED;
}

/* Sends what was counted, if it was: when the record of the request has gone out. */
VERIFIED_ONCE int counting_output(struct counting_state *counting, __u64 request_ns, __u64 dur_ns,
				  __u32 pid, __u32 tid)
{
	if (!counting || counting->stage != COUNTING_ENDED)
		return 0;
	counting->stage = COUNTING_NOT;
	struct counters_record record = {
		.unknown = counting->unknown,
		.counters = config.perf_counters,
		.tid = tid,
		.request_ns = request_ns,
		.dur_ns = dur_ns + 1,
	};
	__builtin_memcpy(record.values, counting->sum, sizeof(record.values));
	if (likely(slot_output_kind(&record, RECORD_COUNTERS))) {
		COUNT(layers);
		COUNT(counters);
	} else {
		layer_lost(LOST_COUNTERS, request_ns, dur_ns, pid, 0);
	}
	return 0;
}

#endif
