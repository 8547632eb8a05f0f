/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to NFS servers (net/sunrpc/sched.c, stats.c): from when a thread begins one until its
 * answer is there. The kernel counts the same exchanges in /proc/self/mountstats.
 */
#include "include/layers.h"

struct rpc_clnt {
	__u32 cl_prog;
} CORE;

struct rpc_procinfo {
	const char *p_name;
} CORE;

struct rpc_task {
	struct rpc_clnt *tk_client;
	struct {
		const struct rpc_procinfo *rpc_proc;
	} tk_msg;
	unsigned short tk_flags;
} CORE;

enum {
	NFS_PROGRAM = 100003,
	RPC_TASK_ASYNC = 1,
};

/* What is known of a request when it begins, by its address. No later event of the kernel stands
 * for its very last exchange: an entry stays until the next request takes the address. */
struct nfs_begins {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct span_record);
} nfs_begins SEC(".maps");

SEC("tp_btf/rpc_task_begin")
int BPF_PROG(layer_nfs_begin, struct rpc_task *rpc)
{
	struct task_struct *task = current_task();
	struct task_state *state = state_if_recorded(task);
	__u64 request = state ? request_of(state) : 0;
	__u64 key = *(volatile __u64 *)&rpc;
	/* The verifier of newer kernels holds it possible. */
	if (!rpc)
		return 0;
	if (!request || BPF_CORE_READ(rpc, tk_client, cl_prog) != NFS_PROGRAM) {
		bpf_map_delete_elem(&nfs_begins, &key);
		return 0;
	}
	note_below(state);
	struct span_record record = {
		.span = rpc->tk_flags & RPC_TASK_ASYNC ? SPAN_NFS_ASYNC : SPAN_NFS,
		.file = state->file,
		.pid = READ_TYPED(task, tgid),
		.tid = READ_TYPED(task, pid),
		.request_ns = request,
	};
	const char *name = BPF_CORE_READ(rpc, tk_msg.rpc_proc, p_name);
	bpf_probe_read_kernel_str(record.name, sizeof(record.name), name);
	if (bpf_map_update_elem(&nfs_begins, &key, &record, BPF_ANY))
		layer_lost(LOST_SPAN, bpf_ktime_get_ns(), 0, record.pid, 0);
	return 0;
}

/* The times are ktime_t, the whole is from the beginning until now. */
SEC("tp_btf/rpc_stats_latency")
int BPF_PROG(layer_nfs_end, struct rpc_task *rpc, __s64 backlog, __s64 round_trip, __s64 whole)
{
	__u64 key = *(volatile __u64 *)&rpc;
	struct span_record *begun = bpf_map_lookup_elem(&nfs_begins, &key);
	if (!begun)
		return 0;
	struct span_record record = *begun;
	record.ts_ns = bpf_ktime_get_ns() - whole;
	record.dur_ns = whole;
	record.sent_ns = record.ts_ns + backlog;
	span_output(&record);
	return 0;
}
