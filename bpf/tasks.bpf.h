/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which tasks are recorded, and what becomes of them.
 */
#include "include/emit.h"
#include "include/call_filter.h"

/* Recorded tasks that are alive. */
__u64 live_tasks SEC(".data.live");

static long cgroup_step(__u64 index, struct walk_context *context)
{
	struct scratch *scratch = context->scratch;
	struct walk *w = &scratch->walk;
	struct kernfs_node *node = (struct kernfs_node *)w->dentry;
	struct kernfs_node *parent;
	if (bpf_core_field_exists(node->__parent))
		parent = BPF_CORE_READ(node, __parent);
	else
		parent = BPF_CORE_READ((struct kernfs_node___parent *)node, parent);
	if (!parent)
		return 1;
	__u32 at = w->at;
	if (at + MAX_NAME + 2 > w->end || at >= SCRATCH_BYTES - 512)
		return 1;
	long n = bpf_probe_read_kernel_str(scratch->data + at, MAX_NAME + 1,
					   BPF_CORE_READ(node, name));
	if (n < 1 || n > MAX_NAME + 1)
		return 1;
	at += n - 1;
	scratch->data[at & (SCRATCH_BYTES - 1)] = '/';
	w->at = at + 1;
	w->dentry = (__u64)parent;
	return 0;
}

/* Appends the path of the task's cgroup to the scratch from `at` on. */
static __always_inline void walk_cgroup(struct scratch *scratch, struct task_struct *task, __u32 at)
{
	struct walk_context context = { .scratch = scratch };
	scratch->walk.dentry = (__u64)BPF_CORE_READ(task, cgroups, dfl_cgrp, kn);
	scratch->walk.at = at;
	scratch->walk.end = at + MAX_PATH;
	bpf_loop(64, cgroup_step, &context, 0);
}

/* Sends what happened to `task`. `strings`: with command line, executable and
 * cgroup, which only the task itself can have read. */
static __noinline bool send_task(struct task_struct *task, __u32 event, bool strings, __u32 tid)
{
	struct scratch *scratch = scratch_get();
	if (!scratch)
		return false;
	struct task_record *record = (void *)scratch->data;
	__builtin_memset(record, 0, sizeof(*record));
	record->kind = RECORD_TASK;
	record->event = event;
	record->ts_ns = bpf_ktime_get_ns();
	record->start_ns = task->start_time;
	record->cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	record->pid = task->tgid;
	record->tid = tid;
	record->ppid = BPF_CORE_READ(task, real_parent, tgid);
	record->uid = BPF_CORE_READ(task, cred, uid.val);
	record->exit_code = event == TASK_EXIT ? task->exit_code : 0;
	bpf_probe_read_kernel(record->comm, sizeof(record->comm), task->comm);
	__u32 at = sizeof(*record);
	if (strings) {
		struct mm_struct *mm = task->mm;
		if (mm) {
			__u64 start = mm->arg_start;
			__u64 len = mm->arg_end - start;
			if (len > MAX_CMDLINE - 1)
				len = MAX_CMDLINE - 1;
			len &= MAX_CMDLINE - 1;
			if (len && !bpf_probe_read_user(scratch->data + sizeof(*record), len,
							(void *)start)) {
				record->cmdline_len = len;
				at += len;
			}
			struct file *exe = mm->exe_file;
			if (exe) {
				walk_path(scratch, (__u64)BPF_CORE_READ(exe, f_path.mnt),
					  (__u64)BPF_CORE_READ(exe, f_path.dentry), at, true);
				record->exe_len = scratch->walk.at - at;
				at = scratch->walk.at;
			}
		}
		walk_cgroup(scratch, task, at);
		record->cgroup_len = scratch->walk.at - at;
		at = scratch->walk.at;
	}
	__u64 size = at;
	bool sent = size <= SCRATCH_BYTES && wide_output(scratch->data, size);
	scratch_put(scratch);
	if (!sent)
		COUNT(task_lost);
	return sent;
}

static __always_inline struct task_state *take_in(struct task_struct *task)
{
	struct task_state *state = bpf_task_storage_get(&tasks, task, NULL, 0);
	if (state)
		return state;
	state = bpf_task_storage_get(&tasks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (state)
		__sync_fetch_and_add(&live_tasks, 1);
	else
		COUNT(untracked);
	return state;
}

#include "task_filter.bpf.h"

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	if (filters(TASK_RULES) && config.all_tasks) {
		consider_child(parent, child);
		return 0;
	}
	struct task_state *state = bpf_task_storage_get(&tasks, parent, NULL, 0);
	if (!state || state->flags & TASK_WAITS_FOR_EXEC)
		return 0;
	if (!config.follow && child->tgid != parent->tgid)
		return 0;
	if (!take_in(child))
		return 0;
	if (filters(TASK_RULES))
		consider_child(parent, child);
	else
		send_task(child, TASK_FORK, false, child->pid);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *task, __s32 old_pid, struct linux_binprm *bprm)
{
	struct task_state *state = bpf_task_storage_get(&tasks, task, NULL, 0);
	if (!state && !(filters(TASK_RULES) && config.all_tasks))
		return 0;
	if (state)
		state->flags &= ~TASK_WAITS_FOR_EXEC;
	if (filters(TASK_RULES)) {
		bool announced = state && state->flags & TASK_ANNOUNCED;
		if (old_pid != task->pid && announced)
			send_task(task, TASK_EXIT, false, old_pid);
		state = consider(task, NULL);
		if (state)
			__sync_fetch_and_or(&state->flags, TASK_ANNOUNCED);
		if (state || announced)
			send_task(task, TASK_EXEC, true, task->pid);
		return 0;
	}
	/* A thread that executes a program takes the leader's id. */
	if (old_pid != task->pid)
		send_task(task, TASK_EXIT, false, old_pid);
	send_task(task, TASK_EXEC, true, task->pid);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *task, const char *comm)
{
	struct task_state *state = bpf_task_storage_get(&tasks, task, NULL, 0);
	if (filters(TASK_RULES)) {
		struct task_state *passing = consider(task, comm);
		if (passing)
			announce(task, passing);
		state = bpf_task_storage_get(&tasks, task, NULL, 0);
		if (!state || !(state->flags & TASK_ANNOUNCED))
			return 0;
	}
	if (!state || state->flags & TASK_WAITS_FOR_EXEC)
		return 0;
	struct scratch *scratch = scratch_get();
	if (!scratch)
		return 0;
	/* The new name is not yet in the task. */
	struct task_record *record = (void *)scratch->data;
	__builtin_memset(record, 0, sizeof(*record));
	record->kind = RECORD_TASK;
	record->event = TASK_COMM;
	record->ts_ns = bpf_ktime_get_ns();
	record->start_ns = task->start_time;
	record->pid = task->tgid;
	record->tid = task->pid;
	record->ppid = BPF_CORE_READ(task, real_parent, tgid);
	record->uid = BPF_CORE_READ(task, cred, uid.val);
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), comm);
	if (!wide_output(scratch->data, sizeof(*record)))
		COUNT(task_lost);
	scratch_put(scratch);
	return 0;
}

/* Records the call in which `task` is, if it is in one. */
static __always_inline void complete_pending(struct task_struct *task, struct task_state *state)
{
	if (!state->enter_ns)
		return;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 now = bpf_ktime_get_ns();
	if (regs && call_passes(task, state, regs, 0, now, true))
		complete(task, state, regs, 0, now, true);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	struct task_state *state = bpf_task_storage_get(&tasks, task, NULL, 0);
	if (!state)
		return 0;
	__sync_fetch_and_add(&live_tasks, -1);
	if (state->flags & TASK_WAITS_FOR_EXEC)
		return 0;
	complete_pending(task, state);
	if (!filters(TASK_RULES) || state->flags & TASK_ANNOUNCED)
		send_task(task, TASK_EXIT, false, task->pid);
	return 0;
}

/* Takes in tasks that are running already. */
SEC("iter/task")
int adopt(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	if (!task)
		return 0;
	__u32 tgid = task->tgid;
	if (tgid == config.self_pid)
		return 0;
	if (!config.all_tasks && !bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	if (!filters(TASK_RULES) || !config.all_tasks)
		take_in(task);
	if (filters(TASK_RULES)) {
		struct task_state *state = consider(task, NULL);
		if (!state)
			return 0;
		__sync_fetch_and_or(&state->flags, TASK_ANNOUNCED);
	}
	/* User space reads which tasks were taken in and describes them. */
	struct adopted_task adopted = {
		.pid = tgid,
		.tid = task->pid,
		.start_ns = task->start_time,
	};
	bpf_seq_write(ctx->meta->seq, &adopted, sizeof(adopted));
	return 0;
}

/* At the end: records the calls that have not returned. */
SEC("iter/task")
int pending(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	if (!task)
		return 0;
	struct task_state *state = bpf_task_storage_get(&tasks, task, NULL, 0);
	if (state && !(state->flags & TASK_WAITS_FOR_EXEC))
		complete_pending(task, state);
	return 0;
}
