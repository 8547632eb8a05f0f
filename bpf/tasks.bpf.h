/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which tasks are recorded, and what becomes of them.
 *
 * A task is recorded when it has state, which is in its task storage: no map to
 * look up. Fork makes the state before the child runs, so the first call of the
 * child is seen. The task of the command waits for its execve, so nothing that
 * fathom does before is recorded.
 *
 * An iterator adopts tasks that run already. One that sleeps or was preempted in
 * a call has its registers and descriptors at hand, so the call is noted as its
 * entry would have noted it, and marked. For a task on a processor the kernel
 * does not expose whether it is in a call. At the end the programs are detached,
 * and an iterator records the calls that have not returned. Calls of a killed
 * thread are recorded as it exits.
 */
#include "include/emit.h"
#include "include/call_filter.h"
#include "include/operations.h"
#if HAVE_LAYERS
#include "include/waits.h"
#endif
#if HAVE_CONTEXTS
#include "include/context.h"
#endif

/* Recorded tasks that are alive. */
__u64 live_tasks SEC(".data.live");

SCRATCH_STEP(cgroup_step)
{
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
	scratch->walk.dentry = (__u64)BPF_CORE_READ(task, cgroups, dfl_cgrp, kn);
	scratch->walk.at = at;
	scratch->walk.end = at + MAX_PATH;
	SCRATCH_LOOP(64, cgroup_step, scratch);
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
	record->started_at_ns = READ_TYPED(task, start_time);
	record->cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	record->pid = READ_TYPED(task, tgid);
	record->tid = tid;
	record->ppid = BPF_CORE_READ(task, real_parent, tgid);
	record->uid = BPF_CORE_READ(task, cred, uid.val);
	record->exit_code = event == TASK_EXIT ? READ_TYPED(task, exit_code) : 0;
	record->mnt_ns = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
	bpf_probe_read_kernel(record->comm, sizeof(record->comm), task->comm);
	__u32 at = sizeof(*record);
	if (strings) {
		struct mm_struct *mm = READ_LINK(task_struct, task, mm);
		/* Both are paths or memory of the program. */
		if (mm && (config.detail != DETAIL_RAW || config.counters)) {
			__u64 start = READ_TYPED(mm, arg_start);
			__u64 len = READ_TYPED(mm, arg_end) - start;
			if (len > MAX_CMDLINE - 1)
				len = MAX_CMDLINE - 1;
			len &= MAX_CMDLINE - 1;
			if (len && !bpf_probe_read_user(scratch->data + sizeof(*record), len,
							(void *)start)) {
				record->cmdline_len = len;
				at += len;
			}
			struct file *exe = READ_TYPED(mm, exe_file);
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
	struct task_state *state = task_state_of(task);
	if (state)
		return state;
	state = task_state_make(task);
	if (state)
		__sync_fetch_and_add(&live_tasks, 1);
	else
		COUNT(untracked);
	recorded_from_now_on();
	return state;
}

/* Sends what happened to a recorded task; what finds no room is made up for
 * with its next call. */
static __always_inline void announce_task(struct task_struct *task, struct task_state *state,
					  __u32 event, bool strings)
{
	if (send_task(task, event, strings, READ_TYPED(task, pid)))
		set_flags(state, TASK_ANNOUNCED);
	else
		clear_flags(state, TASK_ANNOUNCED);
}

/* A global function: the verifier checks it once. */
__noinline int announce(void)
{
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	if (state)
		announce_task(task, state, TASK_SEEN, true);
	return 0;
}

/* Whether the children of `parent` are to be taken in. */
static __always_inline bool has_heirs(struct task_struct *parent)
{
	struct task_state *state = task_state_of(parent);
	return state && !(state->flags & TASK_WAITS_FOR_EXEC);
}

#include "task_filter.bpf.h"

static __always_inline void forked(struct task_struct *parent, struct task_struct *child)
{
	if (!config.follow && child->tgid != parent->tgid)
		return;
	struct task_state *state = take_in(child);
	if (!state)
		return;
	if (filters(TASK_RULES))
		consider_child(parent, child);
	else
		announce_task(child, state, TASK_FORK, false);
#if HAVE_LAYERS
	/* Until it runs for the first time. */
	if (is_recorded(state))
		waits_from_now(child, state, 0, 0);
#endif
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
#if HAVE_CONTEXTS
	if (config.contexts)
		context_forked(parent, child);
#endif
	if (filters_whole_machine())
		consider_child(parent, child);
	else if (has_heirs(parent))
		forked(parent, child);
	return 0;
}

static __always_inline int executed(struct task_struct *task, __s32 old_pid)
{
#if HAVE_CONTEXTS
	if (config.contexts)
		context_forgotten(task);
#endif
	task_state_moves(task, old_pid);
	struct task_state *state = task_state_of(task);
	if (!state && !filters_whole_machine())
		return 0;
	if (state) {
		clear_flags(state, TASK_WAITS_FOR_EXEC);
		/* Its mappings are new. */
		state->fault.mm = 0;
#if HAVE_LIBRARY
		if (config.library)
			bpf_task_storage_delete(&library_states, task);
#endif
	}
	if (filters(TASK_RULES)) {
		bool announced = state && state->flags & TASK_ANNOUNCED;
		if (old_pid != READ_TYPED(task, pid) && announced)
			send_task(task, TASK_EXIT, false, old_pid);
		consider(task, NULL);
		state = task_state_of(task);
		if (state && (announced || !(state->flags & TASK_LEFT)))
			announce_task(task, state, TASK_EXEC, true);
		return 0;
	}
	if (!state)
		return 0;
	/* A thread that executes a program takes the leader's id. */
	if (old_pid != task->pid)
		send_task(task, TASK_EXIT, false, old_pid);
	announce_task(task, state, TASK_EXEC, true);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *task, __s32 old_pid, struct linux_binprm *bprm)
{
	return executed(task, old_pid);
}

SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *task, const char *comm)
{
	if (filters(TASK_RULES)) {
		struct task_state *passing = consider(task, comm);
		if (passing && !(passing->flags & TASK_ANNOUNCED))
			announce_task(task, passing, TASK_SEEN, is_current(task));
	}
	struct task_state *state = task_state_of(task);
	if (filters(TASK_RULES) && (!state || !(state->flags & TASK_ANNOUNCED)))
		return 0;
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
	record->started_at_ns = task->start_time;
	record->pid = task->tgid;
	record->tid = task->pid;
	record->ppid = BPF_CORE_READ(task, real_parent, tgid);
	record->uid = BPF_CORE_READ(task, cred, uid.val);
	record->mnt_ns = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
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
	struct pt_regs *regs = task_registers(task, state->number);
	/* Whether one that began before has ended was perhaps not seen. */
	if (regs && state->call_flags & STASH_BEFORE && syscall_number(regs) != state->number)
		regs = NULL;
	__u64 now = bpf_ktime_get_ns();
	if (regs && call_passes(task, state, regs, 0, now, true) &&
	    (!(judges_outcome() && state->call_flags & STASH_LATE) ||
	     note_files_late(task, state, regs, now))) {
#if HAVE_LIBRARY
		if (config.library)
			library_announce(task, READ_TYPED(regs, sp), now);
#endif
		complete(task, state, regs, 0, now, true);
	}
}

static __always_inline int ended(struct task_struct *task)
{
#if HAVE_CONTEXTS
	/* Processes that are not recorded have a place, too, if their parents are. */
	if (config.contexts && READ_TYPED(task, pid) == READ_TYPED(task, tgid))
		context_forgotten(task);
#endif
	struct task_state *state = task_state_of(task);
	if (!state)
		return 0;
	__sync_fetch_and_add(&live_tasks, -1);
	if (!(state->flags & TASK_WAITS_FOR_EXEC)) {
		complete_pending(task, state);
#if HAVE_LIBRARY
		if (config.library)
			library_pending(task, bpf_ktime_get_ns());
#endif
		if (!filters(TASK_RULES) || state->flags & TASK_ANNOUNCED)
			send_task(task, TASK_EXIT, false, task->pid);
	}
	/* What it still does, it does after its end. */
	set_flags(state, TASK_LEFT);
	task_state_drop(task);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	return ended(task);
}

#if HAVE_CLASSIC
extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;

SEC("tracepoint/sched/sched_process_fork")
int sched_process_fork_classic(struct trace_event_raw_sched_process_fork *ctx)
{
	struct task_struct *parent = current_task();
	if (!filters_whole_machine() && !has_heirs(parent))
		return 0;
	struct task_struct *child = bpf_task_from_pid(ctx->child_pid);
	if (!child) {
		COUNT(untracked);
		return 0;
	}
#if HAVE_CONTEXTS
	if (config.contexts)
		context_forked(parent, child);
#endif
	if (filters_whole_machine())
		consider_child(parent, child);
	else
		forked(parent, child);
	bpf_task_release(child);
	return 0;
}

SEC("tracepoint/sched/sched_process_exec")
int sched_process_exec_classic(struct trace_event_raw_sched_process_exec *ctx)
{
	return executed(current_task(), ctx->old_pid);
}

SEC("tracepoint/sched/sched_process_exit")
int sched_process_exit_classic(void *ctx)
{
	return ended(current_task());
}
#endif

/* Notes the call in which `task` waits since before it was taken in, as its entry
 * would have: at the return, or at the end, it is recorded as one that began
 * before. */
static __always_inline void take_in_call(struct task_struct *task, struct task_state *state)
{
	/* Of a task that runs nobody can tell whether it is in a call: the
	 * registers may be those of its last one. Threads of the kernel have none. */
	if (bpf_core_field_exists(task->on_cpu) && READ_TYPED(task, on_cpu))
		return;
	if (READ_TYPED(task, flags) & (PF_KTHREAD | PF_IO_WORKER))
		return;
	struct pt_regs *regs = kernel_entry(task);
	if (!regs)
		return;
	__u32 number = syscall_number(regs);
	bool compat = is_compat(task);
	/* Negative where it was no call that led into the kernel. */
	if (number >= MAX_NUMBERS || (!COMPAT_CALLS && compat))
		return;
	compat = COMPAT_CALLS && compat;
	const volatile struct call_desc *desc = desc_of(number, compat);
	if (!(desc->selected & WATCH_CALL))
		return;
	/* It may wake meanwhile: what it does until this is done goes unseen, and
	 * a call that it ends does not come again. */
	set_flags(state, TASK_LEFT);
	if (!state->enter_ns) {
		state->number = number;
		state->file = 0;
		state->aio_ns = 0;
		state->timed_ns = 0;
		state->call_flags = STASH_BEFORE | (compat ? STASH_COMPAT : 0);
		if (note_files_late(task, state, regs, 0))
			state->enter_ns = bpf_ktime_get_ns();
		else
			state->call_flags = STASH_LEFT_OUT;
	}
	clear_flags(state, TASK_LEFT);
}

/* Takes in tasks that are running already, and judges those that were taken in before by rules that are
 * new. */
SEC("iter/task")
int adopt(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	if (!task)
		return 0;
	__u32 tgid = task->tgid;
	if (tgid == config.self_pid)
		return 0;
	if (task_state_of(task)) {
		if (filters(CGROUP_RULES))
			reconsider(task);
		return 0;
	}
	if (!config.all_tasks && !bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	struct task_state *state = filters_whole_machine() ? NULL : take_in(task);
	if (filters(TASK_RULES))
		state = consider(task, NULL);
	if (!state)
		return 0;
	/* It may be in a call whose entry was not seen. */
	state->call_flags = STASH_LEFT_OUT;
	announce_task(task, state, TASK_SEEN, false);
	take_in_call(task, state);
#if HAVE_LAYERS
	/* Where the kernel does not tell whether it runs, it counts as running. */
	if (is_recorded(state) && bpf_core_field_exists(task->on_cpu) && !READ_TYPED(task, on_cpu))
		waits_from_now(task, state, request_of(state), kernel_state(task));
#endif
	return 0;
}

/* Writes the calls in which recorded tasks are. */
SEC("iter/task")
int in_flight(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_state *state = task ? task_state_of(task) : NULL;
	if (!is_recorded(state))
		return 0;
	struct in_flight_record record = { .ts_ns = state->enter_ns, .fd = -1 };
	if (!record.ts_ns)
		return 0;
	bool compat = COMPAT_CALLS && state->call_flags & STASH_COMPAT;
	record.syscall = desc_of(state->number, compat)->syscall;
	record.pid = task->tgid;
	record.tid = task->pid;
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}

#if HAVE_OPERATIONS
/* Writes the operations that have not completed. */
SEC("iter/bpf_map_elem")
int operations_in_flight(struct bpf_iter__bpf_map_elem *ctx)
{
	const struct operation *op = ctx->value;
	if (!op || op->claimed || op->left)
		return 0;
	struct in_flight_record record = {
		.ts_ns = op->ts_ns,
		.pid = op->pid,
		.tid = op->tid,
		.flags = IN_FLIGHT_OPERATION | (op->seekable ? IN_FLIGHT_SEEKABLE : 0),
		.fd = -1,
	};
	const volatile struct call_desc *desc = op_desc(op->number);
	record.syscall = desc->syscall;
	if (desc->fd != NO_ARG && !(op->flags & OP_FIXED_FILE))
		record.fd = op->args[ARG_FD];
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
#endif

/* At the end: records the calls that have not returned, and the operations
 * that have not ended. */
SEC("iter/task")
int pending(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	if (!task)
		return 0;
#if HAVE_OPERATIONS
	if (ctx->meta->seq_num == 0)
		op_pending();
#endif
	struct task_state *state = task_state_of(task);
	if (!state || state->flags & TASK_WAITS_FOR_EXEC)
		return 0;
#if HAVE_LAYERS
	if (state->layers.out_ns)
		wait_ends(task, &state->layers, bpf_ktime_get_ns(), WAIT_PENDING);
#endif
	complete_pending(task, state);
#if HAVE_LIBRARY
	if (config.library)
		library_pending(task, bpf_ktime_get_ns());
#endif
	return 0;
}
