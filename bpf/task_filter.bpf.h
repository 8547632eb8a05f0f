/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Filters of tasks: by name, ids, user, cgroup and container. A task is judged
 * when it begins and whenever something of it changes, never at its calls: one
 * that is not recorded has no state, or one that says so.
 */

/* Whether tasks are told by the filters alone. */
static __always_inline bool filters_whole_machine(void)
{
	return filters(TASK_RULES) && config.all_tasks;
}

#if HAVE_LOOPS
/* What the rules of CGROUP_RULES say of the cgroup of `task` and all above it: a
 * byte a kind, from RULE_CGROUP on. */
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
	__u32 signs = j->signs | of_container << 8 | j->unit_signs << 16 | j->pod_signs << 24;
	judge_put(j);
	scratch_put(scratch);
	return signs;
}
#else
static __always_inline __u32 cgroup_signs(struct task_struct *task)
{
	return 0;
}
#endif

static __always_inline bool number_passes(__u32 kind, __u32 number)
{
	return !filters(1 << kind) || passes(kind, signs_of(kind, RULE_WHOLE, number));
}

/* Whether the filters let `task` pass; `comm` is the name that it is about to
 * get, null when it keeps its own. */
static __noinline bool task_passes(struct task_struct *task, const char *comm)
{
	if (!number_passes(RULE_PID, READ_TYPED(task, tgid)) ||
	    !number_passes(RULE_TID, READ_TYPED(task, pid)) ||
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
	if (filters(CGROUP_RULES)) {
		__u32 signs = cgroup_signs(task);
#pragma unroll
		for (__u32 kind = RULE_CGROUP; kind <= RULE_POD; kind++, signs >>= 8) {
			if (filters(1 << kind) && !passes(kind, signs & 0xff))
				return false;
		}
	}
	return true;
}

/* Whether a task is of fathom's own: of its process, or of one that it has
 * started to work for it. */
static __always_inline bool is_of_fathom(struct task_struct *task)
{
	return (__u32)READ_TYPED(task, tgid) == config.self_pid ||
	       (__u32)BPF_CORE_READ(task, real_parent, tgid) == config.self_pid;
}

/* Judges a task. One that belongs to a command or a process that is recorded
 * keeps its state when it does not pass; of all others only those that pass have
 * one. Returns the state of a task that passes. */
static __noinline struct task_state *consider(struct task_struct *task, const char *comm)
{
	struct task_state *state = task_state_of(task);
	if (!state && (!config.all_tasks || is_of_fathom(task)))
		return NULL;
	if (!task_passes(task, comm)) {
		if (state)
			set_flags(state, TASK_LEFT);
		return NULL;
	}
	bool fresh = !state;
	if (fresh)
		state = take_in(task);
	if (!state || state->flags & TASK_WAITS_FOR_EXEC)
		return NULL;
	if (fresh || state->flags & TASK_LEFT) {
		/* It may be in a call whose entry was left out; entries of calls that
		 * succeeded stay behind with --errors-only. */
		if (filter.errors_only)
			state->enter_ns = 0;
		if (!state->enter_ns)
			state->call_flags = STASH_LEFT_OUT;
		clear_flags(state, TASK_LEFT);
	}
	return state;
}

/* Only what runs now can have its command line read. */
static __always_inline bool is_current(struct task_struct *task)
{
	return (__u32)bpf_get_current_pid_tgid() == (__u32)READ_TYPED(task, pid);
}

/* A task that passes for the first time is announced. */
static __noinline int reconsider(struct task_struct *task)
{
	struct task_state *state = consider(task, NULL);
	if (state && !(state->flags & TASK_ANNOUNCED))
		announce_task(task, state, TASK_SEEN, is_current(task));
	return 0;
}

/* A new task: it may pass though its parent does not, and the other way round. */
static __always_inline void consider_child(struct task_struct *parent, struct task_struct *child)
{
	struct task_state *state = consider(child, NULL);
	if (!state)
		return;
	struct task_state *above = task_state_of(parent);
	/* The child has the memory of its parent, which runs now. */
	bool known = above && above->flags & TASK_ANNOUNCED;
	announce_task(child, state, known ? TASK_FORK : TASK_SEEN, !known);
}

#if HAVE_LOOPS
extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task,
			     unsigned int flags) __weak __ksym;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __weak __ksym;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __weak __ksym;

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(cgroup_attach_task, struct cgroup *cgroup, const char *path, struct task_struct *task,
	     bool threadgroup)
{
	if (!filters(CGROUP_RULES))
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
#endif
