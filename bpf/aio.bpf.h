/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Operations of Linux AIO: one record an iocb.
 *
 * The kernel has no tracepoints for them. Submissions are seen in io_submit.
 * Ends are seen in three places, the exact one first:
 *   - iomap_dio_complete: the end of direct I/O on file systems with iomap;
 *   - the ring of completions, which is in the program's memory: looked through
 *     whenever a call of AIO is made, as programs may reap it without a call;
 *   - what io_getevents returns.
 * The last two tell the result, but of the time only that it had ended by then:
 * OP_END_APPROXIMATE. Where the kernel allows programs on functions, one on aio_complete
 * would be exact for all: it would call aio_ended() with the fields of struct
 * aio_kiocb, as aio_dio_complete does.
 */
#include "include/operations.h"

enum {
	AIO_EVENT_BYTES = 32,
	/* struct aio_ring: completions follow its header. */
	AIO_EVENTS_AT = 32,
	/* Of one io_submit; the kernel takes no more either in practice, as a
	 * context of so many events is beyond aio-max-nr's default. */
	AIO_MAX_BATCH = 65536,
	AIO_MAX_CONTEXTS = 1024,
	IOCB_CMD_POLL = 5,
};

struct aio_search {
	__u64 table;
	__u64 user_id;
	__u64 found;
};

/* An operation ended with result `end->ret`; `end->now` is when that was found out. */
static __always_inline void aio_ended(struct op_key *key, __u64 turn, struct op_end *end)
{
	struct operation *op = bpf_map_lookup_elem(&operations, key);
	if (!op || op->turn > turn)
		return;
	const volatile struct call_desc *desc = op_desc(op->number);
	end->offset = NO_OFFSET;
	end->flags = 0;
	end->pending = 0;
	if (op->done_ns && op->done_ret == end->ret) {
		end->now = op->done_ns;
		end->offset = op->done_offset;
	} else {
		end->flags = OP_END_APPROXIMATE;
		struct file *file = KERNEL_OBJECT(file, op->file_ptr);
		bool appends = op->file_ptr && desc->flags & DESC_WRITES &&
			       write_appends(file, op->args[ARG_FLAGS]);
		if (desc->offset != NO_ARG && !appends)
			end->offset = op->args[ARG_OFF];
	}
	op_finish(key, op, end);
}

SEC("tp_btf/iomap_dio_complete")
int BPF_PROG(aio_dio_complete, struct kiocb *iocb, int error, long ret)
{
	if (!iocb->ki_complete)
		return 0;
	/* Of AIO or of anything else: others have no such key. */
	struct aio_kiocb *req = (struct aio_kiocb *)iocb;
	struct op_key key = {
		.owner = (__u64)BPF_CORE_READ(req, ki_ctx),
		.id = BPF_CORE_READ(req, ki_res.obj),
	};
	struct operation *op = bpf_map_lookup_elem(&operations, &key);
	if (!op)
		return 0;
	op->done_ns = bpf_ktime_get_ns();
	op->done_ret = ret;
	op->done_offset = ret > 0 ? iocb->ki_pos - ret : (__s64)op->args[ARG_OFF];
	/* What falls short may be continued through the page cache. */
	if (ret > 0 && (__u64)ret == op->size) {
		struct op_end end = { .now = op->done_ns, .ret = ret };
		aio_ended(&key, NO_SIZE, &end);
	}
	return 0;
}

/* include/uapi/linux/aio_abi.h */
struct aio_completion {
	__u64 data;
	__u64 obj;
	__s64 res;
	__s64 res2;
};

/* Completions to be looked at: the present task's, as it is too large for the
 * stack. */
struct aio_reap {
	__u64 context; /* struct kioctx */
	__u64 events; /* struct io_event[] in user memory */
	__u64 turn; /* of the first; all ones: of any */
	__u64 entries; /* of the ring; 0: an array */
	__u64 now;
	struct aio_completion event;
	struct op_key key;
	struct op_end end;
};
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct aio_reap);
} reaps SEC(".maps");

struct aio_reaping {
	struct aio_reap *reap;
};

static long reap_step(__u64 index, struct aio_reaping *reaping)
{
	struct aio_reap *r = reaping->reap;
	__u64 turn = r->entries ? r->turn + index : r->turn;
	__u64 at = r->entries ? turn % r->entries : index;
	if (bpf_probe_read_user(&r->event, sizeof(r->event),
				(void *)(r->events + AIO_EVENT_BYTES * at)))
		return 0;
	r->key.owner = r->context;
	r->key.id = r->event.obj;
	r->end.now = r->now;
	r->end.ret = r->event.res;
	aio_ended(&r->key, turn, &r->end);
	return 0;
}

/* Looks at `count` completions at `events`; `entries` as above. */
__noinline int aio_reap_events(__u64 context, __u64 events, __u64 turn, __u64 entries, __u64 count)
{
	struct task_struct *task = current_task();
	struct aio_reaping reaping = {
		.reap = bpf_task_storage_get(&reaps, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE),
	};
	struct aio_reap *reap = reaping.reap;
	if (!reap)
		return 0;
	reap->context = context;
	reap->events = events;
	reap->turn = turn;
	reap->entries = entries;
	reap->now = bpf_ktime_get_ns();
	bpf_loop(count, reap_step, &reaping, 0);
	return 0;
}

/* Turn of the completion that comes next in `context`, and of the first that
 * was not looked at. */
static __always_inline __u64 aio_tail(struct kioctx *context, __u64 seen, __u64 entries)
{
	__u64 tail = BPF_CORE_READ(context, tail);
	return seen + (tail + entries - seen % entries) % entries;
}

/* Looks through completions that are new in the ring of `context`; returns the
 * turn of the next one to come. */
__noinline __u64 aio_harvest(__u64 context)
{
	struct kioctx *ctx = (struct kioctx *)context;
	__u64 events = BPF_CORE_READ(ctx, user_id) + AIO_EVENTS_AT;
	__u64 entries = BPF_CORE_READ(ctx, nr_events);
	if (!entries)
		return 0;
	struct aio_state *state = bpf_map_lookup_elem(&aio_states, &context);
	if (!state) {
		struct aio_state fresh = { .seen = BPF_CORE_READ(ctx, tail) };
		bpf_map_update_elem(&aio_states, &context, &fresh, BPF_NOEXIST);
		return fresh.seen;
	}
	__u64 *seen = &state->seen;
	/* One CPU takes each stretch; when another was faster, once more. */
	for (int i = 0; i < 4; i++) {
		__u64 from = *(volatile __u64 *)seen;
		__u64 to = aio_tail(ctx, from, entries);
		if (from == to)
			return to;
		if (__sync_val_compare_and_swap(seen, from, to) != from)
			continue;
		aio_reap_events(context, events, from, entries, to - from);
		return to;
	}
	return aio_tail(ctx, *(volatile __u64 *)seen, entries);
}

/* The contexts of the present task's process: how many places its table has, and
 * where they begin. */
static __always_inline __u32 aio_contexts(__u64 *table)
{
	struct task_struct *task = current_task();
	struct mm_struct *mm = READ_LINK(task_struct, task, mm);
	if (!mm)
		return 0;
	/* As a number: arithmetic on a kernel pointer is refused. */
	__u64 found = (__u64)BPF_CORE_READ(mm, ioctx_table);
	if (!found)
		return 0;
	*table = found + bpf_core_field_offset(struct kioctx_table, table);
	__u32 contexts = BPF_CORE_READ((struct kioctx_table *)found, nr);
	return contexts < AIO_MAX_CONTEXTS ? contexts : AIO_MAX_CONTEXTS;
}

static __always_inline __u64 aio_context_at(__u64 table, __u64 index)
{
	__u64 context = 0;
	bpf_probe_read_kernel(&context, sizeof(context), (void *)(table + 8 * index));
	return context;
}

static long harvest_step(__u64 index, __u64 *table)
{
	__u64 context = aio_context_at(*table, index);
	if (context)
		aio_harvest(context);
	return 0;
}

/* The process ends: looks through the completions of all its contexts. */
__noinline int aio_harvest_all(void)
{
	__u64 table = 0;
	__u32 contexts = aio_contexts(&table);
	bpf_loop(contexts, harvest_step, &table, 0);
	return 0;
}

static long context_step(__u64 index, struct aio_search *search)
{
	__u64 context = aio_context_at(search->table, index);
	if (!context || BPF_CORE_READ((struct kioctx *)context, user_id) != search->user_id)
		return 0;
	search->found = context;
	return 1;
}

/* The context that a program calls `user_id`, 0 when there is none. */
__noinline __u64 aio_context_of(__u64 user_id)
{
	struct aio_search search = { .user_id = user_id };
	__u32 contexts = aio_contexts(&search.table);
	bpf_loop(contexts, context_step, &search, 0);
	return search.found;
}

struct aio_batch {
	__u64 context;
	__u64 iocbs; /* struct iocb *[] in user memory */
	__u64 turn;
	__u64 first;
	__u64 taken;
};

static __always_inline __u64 iocb_address(__u64 iocbs, __u64 index)
{
	__u64 address = 0;
	if (bpf_probe_read_user(&address, sizeof(address), (void *)(iocbs + 8 * index)))
		return 0;
	return address;
}

static long submit_step(__u64 index, struct aio_batch *batch)
{
	struct task_struct *task = current_task();
	struct op_beginning *begins = beginning_of(task);
	if (!begins)
		return 1;
	struct op_key *key = &begins->key;
	struct iocb *iocb = &begins->iocb;
	struct operation *op = &begins->op;
	key->owner = batch->context;
	key->id = iocb_address(batch->iocbs, batch->first + index);
	if (!key->id || bpf_probe_read_user(iocb, sizeof(*iocb), (void *)key->id))
		return 1;
	batch->taken++;
	if (iocb->opcode >= MAX_OPERATIONS - AIO_OPERATIONS)
		return 0;
	__builtin_memset(op, 0, sizeof(*op));
	op->args[ARG_FD] = (__s64)iocb->fd;
	op->args[ARG_OFF] = iocb->offset;
	op->args[ARG_ADDR] = iocb->buf;
	op->args[ARG_LEN] = iocb->nbytes;
	op->args[ARG_FLAGS] = iocb->rw_flags;
	op->user_data = iocb->data;
	op->turn = batch->turn;
	op->number = AIO_OPERATIONS + iocb->opcode;
	const volatile struct call_desc *desc = op_desc(op->number);
	if (!desc->selected)
		return 0;
	if (desc->fd != NO_ARG)
		op->file_ptr = (__u64)file_of_fd(task, iocb->fd);
	/* They have no strings. */
	if (op_begin() && op_keep_anyway(key)) {
		struct aio_state *context = bpf_map_lookup_elem(&aio_states, &batch->context);
		if (context)
			__sync_fetch_and_add(&context->live, 1);
	}
	return 0;
}

static long unsubmit_step(__u64 index, struct aio_batch *batch)
{
	struct op_key key = {
		.owner = batch->context,
		.id = iocb_address(batch->iocbs, batch->first + index),
	};
	if (!key.id)
		return 1;
	struct operation *op = bpf_map_lookup_elem(&operations, &key);
	if (op && !__sync_lock_test_and_set(&op->claimed, 1))
		op_forget(&key, op);
	return 0;
}

static long destroyed_step(struct bpf_map *map, const void *key, void *value, void *context)
{
	struct op_key at = *(const struct op_key *)key;
	if (at.owner == *(__u64 *)context)
		op_give_up(&at, value, OP_COMPLETION_UNSEEN);
	return 0;
}

/* A call that has to do with AIO begins. */
__noinline int aio_enter(__u32 watch, __u64 context, __u64 count, __u64 iocbs)
{
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	if (!state)
		return 0;
	state->aio_context = 0;
	if (!context)
		return 0;
	struct aio_batch batch = { .context = aio_context_of(context), .iocbs = iocbs };
	state->aio_context = batch.context;
	if (!batch.context)
		return 0;
	batch.turn = aio_harvest(batch.context);
	if (watch & WATCH_AIO_SUBMIT && (__s64)count > 0) {
		bpf_loop(count < AIO_MAX_BATCH ? count : AIO_MAX_BATCH, submit_step, &batch, 0);
		state->aio_taken = batch.taken;
	}
	return 0;
}

/* It ends. `count` and `array`: iocbs that were to be submitted and where they
 * stand, or where completions were put. */
__noinline int aio_exit(__u32 watch, __s64 ret, __u64 count, __u64 array)
{
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	if (!state || !state->aio_context)
		return 0;
	__u64 context = state->aio_context;
	state->aio_context = 0;
	if (watch & WATCH_AIO_DESTROY) {
		if (ret)
			return 0;
		/* It has waited for all; how they ended can no longer be seen. The
		 * search takes milliseconds. */
		struct aio_state *known = bpf_map_lookup_elem(&aio_states, &context);
		if (known && known->live)
			bpf_for_each_map_elem(&operations, destroyed_step, &context, 0);
		bpf_map_delete_elem(&aio_states, &context);
		return 0;
	}
	if (watch & WATCH_AIO_SUBMIT) {
		__u64 accepted = ret > 0 ? ret : 0;
		__u64 taken = state->aio_taken;
		struct aio_batch batch = { .context = context, .iocbs = array };
		if (taken > accepted) {
			/* One was refused, and those after it not looked at. */
			batch.first = accepted;
			bpf_loop(taken - accepted, unsubmit_step, &batch, 0);
		} else if (taken < accepted) {
			/* These were not in memory before the call. */
			batch.first = taken;
			bpf_loop(accepted - taken, submit_step, &batch, 0);
		}
	} else if (watch & WATCH_AIO_REAP && ret > 0) {
		aio_reap_events(context, array, NO_SIZE, 0, ret);
	}
	aio_harvest(context);
	return 0;
}
