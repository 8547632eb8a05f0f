// SPDX-License-Identifier: GPL-2.0-only
/*
 * What any tracer of system calls has to pay, for comparison: `bare` are empty
 * programs at entry and exit; `floor` is the same with one 64-byte record a
 * call of one process, written into a ring buffer that wakes nobody up. The
 * user side drains it and drops the records.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct task_struct {
	int tgid;
	struct task_struct *real_parent;
} __attribute__((preserve_access_index));

struct record {
	__u64 words[8];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} records SEC(".maps");

struct counters {
	__u64 written;
	__u64 dropped;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counters SEC(".maps");

/* Process to record, set once it runs; no process has number 0. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

SEC("tp_btf/sys_enter")
int bare_enter(void *ctx)
{
	return 0;
}

SEC("tp_btf/sys_exit")
int bare_exit(void *ctx)
{
	return 0;
}

SEC("tp_btf/sys_enter")
int floor_enter(void *ctx)
{
	return 0;
}

SEC("tp_btf/sys_exit")
int floor_exit(__u64 *ctx)
{
	__u32 zero = 0, *process = bpf_map_lookup_elem(&target, &zero);
	__u64 id = bpf_get_current_pid_tgid();

	if (!process)
		return 0;
	if (*process != id >> 32) {
		/* Processes that a server makes for its clients are its children. */
		struct task_struct *task = bpf_get_current_task_btf();
		if (!*process || task->real_parent->tgid != *process)
			return 0;
	}
	struct counters *count = bpf_map_lookup_elem(&counters, &zero);
	struct record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!record) {
		if (count)
			count->dropped++;
		return 0;
	}
	record->words[0] = id;
	record->words[1] = ctx[1];
	for (int i = 2; i < 8; i++)
		record->words[i] = 0;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	if (count)
		count->written++;
	return 0;
}
