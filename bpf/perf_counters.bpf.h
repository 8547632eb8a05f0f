/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters of perf over requests: what passes while a request is off the CPU is left out.
 * Where requests begin and end: syscalls.bpf.h and faults.bpf.h.
 */
#include "include/perf_counters.h"

/* The arguments behind these differ between kernels. */
SEC("tp_btf/sched_switch")
int BPF_PROG(counters_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct task_state *state = task_state_of(prev);
	if (state && state->perf.stage == PERF_ON) {
		perf_read(&state->perf, 0);
		state->perf.stage = PERF_OFF;
	} else if (state && state->perf.stage == PERF_OFF) {
		/* That it came back was not seen: the kernel may leave programs out. */
		state->perf.unknown = ~0;
	}
	state = task_state_of(next);
	if (state && state->perf.stage == PERF_OFF) {
		perf_read(&state->perf, 1);
		state->perf.stage = PERF_ON;
	}
	return 0;
}
