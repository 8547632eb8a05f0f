/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to FUSE servers (fs/fuse/dev.c): from when a thread hands one over until the server
 * has answered. The server's thread makes the record, in the name of the thread that waits.
 */
#include "include/layers.h"

struct fuse_in_header {
	__u32 opcode;
} CORE;

struct fuse_req {
	unsigned long flags;
	struct {
		struct fuse_in_header h;
	} in;
} CORE;

enum fuse_req_flag { FR_BACKGROUND = 3 };

/* Requests for which a thread waits, by their address. */
struct fuse_waits {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct span_record);
} fuse_waits SEC(".maps");

SEC("tp_btf/fuse_request_send")
int BPF_PROG(layer_fuse_send, struct fuse_req *req)
{
	struct task_struct *task = current_task();
	struct task_state *state = state_if_recorded(task);
	__u64 request = state ? request_of(state) : 0;
	/* Nobody waits for readahead and write-back. */
	if (!request || req->flags >> bpf_core_enum_value(enum fuse_req_flag, FR_BACKGROUND) & 1)
		return 0;
	note_below(state);
	struct span_record record = {
		.span = SPAN_FUSE,
		.operation = req->in.h.opcode,
		.file = state->file,
		.ts_ns = bpf_ktime_get_ns(),
		.pid = READ_TYPED(task, tgid),
		.tid = READ_TYPED(task, pid),
		.request_ns = request,
	};
	__u64 key = *(volatile __u64 *)&req;
	if (bpf_map_update_elem(&fuse_waits, &key, &record, BPF_ANY))
		layer_lost(LOST_SPAN, record.ts_ns, 0, record.pid, 0);
	return 0;
}

SEC("tp_btf/fuse_request_end")
int BPF_PROG(layer_fuse_end, struct fuse_req *req)
{
	__u64 key = *(volatile __u64 *)&req;
	struct span_record *wait = bpf_map_lookup_elem(&fuse_waits, &key);
	if (!wait)
		return 0;
	struct span_record record = *wait;
	bpf_map_delete_elem(&fuse_waits, &key);
	record.dur_ns = bpf_ktime_get_ns() - record.ts_ns;
	span_output(&record);
	return 0;
}
