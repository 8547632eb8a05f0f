/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls of functions of libraries (--library): one record a call, made when it returns.
 *
 * The calls that a thread is in lie on a stack of their own. Each knows where its return address
 * is, so a call that never returns, because of longjmp() or an exception, is found when its place
 * on the thread's stack is left or used again. A system call names
 * the innermost of them before its own record (library_announce()).
 */
#include "include/library_state.h"

/* What is read of the calls of each function; the cookie of a program is the function's number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_FUNCTIONS);
	__type(key, __u32);
	__type(value, struct function_desc);
} functions SEC(".maps");

/* How often functions are called, for the budget of user space. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_FUNCTIONS);
	__type(key, __u32);
	__type(value, struct library_tally);
} library_tallies SEC(".maps");

/* Calls of functions beyond that budget, by process, as far as there is room. User space deletes
 * the processes that are over. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct library_count_key);
	__type(value, __u64);
} library_counts SEC(".maps");

#if defined(__TARGET_ARCH_x86)
/* Where the stack pointer is at the return: the return address has gone. */
enum { RETURNS_ABOVE = 8 };

static __always_inline void function_arguments(struct pt_regs *regs, __u64 *args)
{
	args[0] = regs->di;
	args[1] = regs->si;
	args[2] = regs->dx;
	args[3] = regs->cx;
	args[4] = regs->r8;
	args[5] = regs->r9;
}

static __always_inline __s64 function_result(struct pt_regs *regs)
{
	return regs->ax;
}
#else
enum { RETURNS_ABOVE = 0 };

static __always_inline void function_arguments(struct pt_regs *regs, __u64 *args)
{
	args[0] = regs->regs[0];
	args[1] = regs->regs[1];
	args[2] = regs->regs[2];
	args[3] = regs->regs[3];
	args[4] = regs->regs[4];
	args[5] = regs->regs[5];
}

static __always_inline __s64 function_result(struct pt_regs *regs)
{
	return regs->regs[0];
}
#endif

/* The descriptor of the FILE at `stream`, -1 when it cannot be read. */
static __always_inline __s32 stream_descriptor(__u64 stream, __u32 fileno_at)
{
	__s32 fd;
	if (!stream || bpf_probe_read_user(&fd, sizeof(fd), (void *)(stream + fileno_at)))
		return -1;
	return fd;
}

/* The file behind the frame's descriptor. With a filter of paths it would have to be judged. */
static __noinline int note_frame_file(struct library_frame *frame)
{
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	if (!state || !frame || config.detail == DETAIL_RAW || filters(1 << RULE_PATH))
		return 0;
	struct file *file = frame->fd < 0 ? NULL : file_of_fd(task, frame->fd);
	if (file)
		frame->file = handle_of(state, file, bpf_ktime_get_ns());
	return 0;
}

/* A call of a function whose calls are counted: its return is of no interest. */
static __noinline int library_count(struct task_struct *task, __u32 number)
{
	struct library_count_key key = { .pid = READ_TYPED(task, tgid), .function = number };
	COUNT(library_counted);
	__u64 *count = bpf_map_lookup_elem(&library_counts, &key);
	if (!count) {
		__u64 none = 0;
		bpf_map_update_elem(&library_counts, &key, &none, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&library_counts, &key);
	}
	if (count) {
		__sync_fetch_and_add(count, 1);
		return 0;
	}
	struct library_tally *tally = bpf_map_lookup_elem(&library_tallies, &number);
	if (tally)
		__sync_fetch_and_add(&tally->unsplit, 1);
	return 0;
}

static __always_inline int library_begins(struct pt_regs *regs, __u64 cookie)
{
	struct task_struct *task = current_task();
	if (!is_recorded(state_if_recorded(task)))
		return 0;
	__u32 number = cookie & (MAX_FUNCTIONS - 1);
	struct function_desc *desc = bpf_map_lookup_elem(&functions, &number);
	if (desc && desc->counted)
		return library_count(task, number);
	struct library_state *library = library_state_make(task);
	struct library_tally *tally = bpf_map_lookup_elem(&library_tallies, &number);
	if (!desc || !library || !tally) {
		COUNT(library_unseen);
		return 0;
	}
	__u64 sp = regs->sp;
	drop_abandoned(task, library, sp, bpf_ktime_get_ns());
	__u32 depth = library->depth;
	if (depth >= MAX_LIBRARY_DEPTH) {
		COUNT(library_unseen);
		return 0;
	}
	__sync_fetch_and_add(&tally->calls, 1);
	struct library_frame *frame = &library->frames[depth & (MAX_LIBRARY_DEPTH - 1)];
	frame->sp = sp;
	frame->function = number;
	frame->announced = 0;
	frame->file = 0;
	frame->fd = -1;
	function_arguments(regs, frame->args);
	__u32 place = desc->stream != NO_ARG ? desc->stream : desc->fd;
	if (place < LIBRARY_ARGS) {
		__u64 value = frame->args[place & 7];
		frame->fd = desc->stream != NO_ARG ? stream_descriptor(value, desc->fileno_at)
						   : (__s32)value;
		note_frame_file(frame);
	}
	library->depth = depth + 1;
	frame->began_ns = bpf_ktime_get_ns();
	return 0;
}

/* Whether the call of `number` that returns to `sp` has a frame. One that was counted has none, but
 * may have been jumped to at the end of one that has, from the same place. */
static __always_inline bool has_frame(struct library_state *library, __u32 number, __u64 sp)
{
	for (__u32 i = 0; i < MAX_LIBRARY_DEPTH; i++) {
		struct library_frame *frame = &library->frames[i];
		if (i < library->depth && frame->sp == sp && frame->function == number)
			return true;
	}
	return false;
}

/* Drops the calls that the one that returns now was made from, or that were abandoned; the frame
 * of that one is at the depth that is left then. False when it has none. */
static __always_inline bool library_returns(struct task_struct *task, struct library_state *library,
					    __u32 number, __u64 sp, __u64 now)
{
	for (int i = 0; i < MAX_LIBRARY_DEPTH; i++) {
		__u32 depth = library->depth - 1;
		if (depth >= MAX_LIBRARY_DEPTH)
			return false;
		struct library_frame *frame = &library->frames[depth & (MAX_LIBRARY_DEPTH - 1)];
		if (frame->sp > sp)
			return false;
		library->depth = depth;
		if (frame->sp == sp && frame->function == number)
			return true;
		library_output(task, library, 0, now, LIBRARY_CALL_ABANDONED | NO_PATH);
	}
	return false;
}

static __always_inline int library_ends(struct pt_regs *regs, __u64 cookie)
{
	__u64 now = bpf_ktime_get_ns();
	struct task_struct *task = current_task();
	struct library_state *library = library_state_of(task);
	__u32 number = cookie & (MAX_FUNCTIONS - 1);
	struct function_desc *desc = bpf_map_lookup_elem(&functions, &number);
	__u64 sp = regs->sp - RETURNS_ABOVE;
	if (!library || !desc || (desc->counted && !has_frame(library, number, sp)) ||
	    !library_returns(task, library, number, sp, now))
		return 0;
	struct library_frame *frame = &library->frames[library->depth & (MAX_LIBRARY_DEPTH - 1)];
	__s64 ret = function_result(regs);
	if (desc->stream == RESULT_ARG || desc->fd == RESULT_ARG) {
		frame->fd = desc->stream == RESULT_ARG ? stream_descriptor(ret, desc->fileno_at)
						       : (__s32)ret;
		note_frame_file(frame);
	}
	library_output(task, library, ret, now, (__u32)desc->path << PATH_SHIFT);
	return 0;
}

#define LIBRARY_PROGRAMS(suffix, entry, end)                                                       \
	SEC(entry)                                                                                 \
	int library_enter##suffix(struct pt_regs *ctx)                                             \
	{                                                                                          \
		return library_begins(ctx, bpf_get_attach_cookie(ctx));                            \
	}                                                                                          \
	SEC(end)                                                                                   \
	int library_return##suffix(struct pt_regs *ctx)                                            \
	{                                                                                          \
		return library_ends(ctx, bpf_get_attach_cookie(ctx));                              \
	}

LIBRARY_PROGRAMS(_multi, "uprobe.multi", "uretprobe.multi")
LIBRARY_PROGRAMS(_single, "uprobe", "uretprobe")
