/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Filters of tasks: by name, ids, user, cgroup and container. A task is judged
 * when it begins and whenever something of it changes, never at its calls: one
 * that is not recorded has no state, or one that says so.
 */

/* What the rules say of the cgroup of `task`: those of its cgroup and all above
 * it, in the lower half for RULE_CGROUP, in the upper half for RULE_CONTAINER. */
static __noinline __u32 cgroup_signs(struct task_struct *task)
{
	struct scratch *scratch = scratch_get();
	if (!scratch)
		return 0;
	struct judge *j = judge_get();
	if (!j) {
		scratch_put(scratch);
		return 0;
	}
	struct judge_context context = { .scratch = scratch, .judge = j };
	walk_cgroup(scratch, task, 0);
	j->kind = RULE_CGROUP;
	judge_names(&context, 0, scratch->walk.at);
	__u32 of_container = 0;
	if (filters(1 << RULE_CONTAINER)) {
		look_up(&context, RULE_CONTAINER);
		of_container = j->signs;
		j->signs = 0;
	}
	if (filters(1 << RULE_CGROUP))
		look_up(&context, RULE_CGROUP);
	__u32 signs = j->signs | of_container << 16;
	judge_put(j);
	scratch_put(scratch);
	return signs;
}

static __always_inline bool number_passes(__u32 kind, __u32 number)
{
	return !filters(1 << kind) || passes(kind, signs_of(kind, RULE_WHOLE, number));
}

/* Whether the filters let `task` pass; `comm` is the name that it is about to
 * get, null when it keeps its own. */
static __noinline bool task_passes(struct task_struct *task, const char *comm)
{
	if (!number_passes(RULE_PID, task->tgid) || !number_passes(RULE_TID, task->pid) ||
	    !number_passes(RULE_UID, BPF_CORE_READ(task, cred, uid.val)))
		return false;
	if (filters(1 << RULE_COMM)) {
		char name[COMM_BYTES] = {};
		if (comm)
			bpf_probe_read_kernel_str(name, sizeof(name), comm);
		else
			bpf_probe_read_kernel_str(name, sizeof(name), task->comm);
		__u64 hash = filter.seed;
		__u32 signs = 0;
#pragma unroll
		for (int i = 0; i < COMM_BYTES; i++) {
			if (filter.comm_lengths >> i & 1)
				signs |= signs_of(RULE_COMM, RULE_BEGINNING, hash);
			if (!name[i])
				break;
			hash = hash * filter.factor + (__u8)name[i];
		}
		signs |= signs_of(RULE_COMM, RULE_WHOLE, hash);
		if (!passes(RULE_COMM, signs))
			return false;
	}
	if (filters(1 << RULE_CGROUP | 1 << RULE_CONTAINER)) {
		__u32 signs = cgroup_signs(task);
		if (filters(1 << RULE_CGROUP) && !passes(RULE_CGROUP, signs & 0xffff))
			return false;
		if (filters(1 << RULE_CONTAINER) && !passes(RULE_CONTAINER, signs >> 16))
			return false;
	}
	return true;
}

/* Judges a task. One that belongs to a command or a process that is recorded
 * keeps its state when it does not pass; of all others only those that pass have
 * one. Returns the state of a task that passes. */
static __noinline struct task_state *consider(struct task_struct *task, const char *comm)
{
	struct task_state *state = bpf_task_storage_get(&tasks, task, NULL, 0);
	if (!state && (!config.all_tasks || (__u32)task->tgid == config.self_pid))
		return NULL;
	if (!task_passes(task, comm)) {
		if (state)
			__sync_fetch_and_or(&state->flags, TASK_LEFT);
		return NULL;
	}
	if (!state)
		state = take_in(task);
	if (!state || state->flags & TASK_WAITS_FOR_EXEC)
		return NULL;
	__sync_fetch_and_and(&state->flags, ~TASK_LEFT);
	return state;
}

/* Sends the record of a task that passes for the first time. */
static __noinline int announce(struct task_struct *task, struct task_state *state)
{
	if (!state || state->flags & TASK_ANNOUNCED)
		return 0;
	__sync_fetch_and_or(&state->flags, TASK_ANNOUNCED);
	/* Only what runs now can have its command line read. */
	bool strings = (__u32)bpf_get_current_pid_tgid() == (__u32)task->pid;
	send_task(task, TASK_SEEN, strings, task->pid);
	return 0;
}

static __noinline int reconsider(struct task_struct *task)
{
	struct task_state *state = consider(task, NULL);
	if (state)
		announce(task, state);
	return 0;
}

/* A new task: it may pass though its parent does not, and the other way round. */
static __always_inline void consider_child(struct task_struct *parent, struct task_struct *child)
{
	struct task_state *state = consider(child, NULL);
	if (!state)
		return;
	__sync_fetch_and_or(&state->flags, TASK_ANNOUNCED);
	struct task_state *above = bpf_task_storage_get(&tasks, parent, NULL, 0);
	/* The child has the memory of its parent, which runs now. */
	if (above && above->flags & TASK_ANNOUNCED)
		send_task(child, TASK_FORK, false, child->pid);
	else
		send_task(child, TASK_SEEN, true, child->pid);
}

extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task,
			     unsigned int flags) __weak __ksym;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __weak __ksym;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __weak __ksym;

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(cgroup_attach_task, struct cgroup *cgroup, const char *path, struct task_struct *task,
	     bool threadgroup)
{
	if (!filters(1 << RULE_CGROUP | 1 << RULE_CONTAINER))
		return 0;
	if (!threadgroup || !bpf_ksym_exists(bpf_iter_task_new)) {
		reconsider(task);
		return 0;
	}
	struct bpf_iter_task threads;
	struct task_struct *thread;
	bpf_iter_task_new(&threads, task, BPF_TASK_ITER_PROC_THREADS);
	while ((thread = bpf_iter_task_next(&threads)))
		reconsider(thread);
	bpf_iter_task_destroy(&threads);
	return 0;
}
