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

static __always_inline int library_begins(struct pt_regs *regs, __u64 cookie)
{
	struct task_struct *task = current_task();
	if (!is_recorded(state_if_recorded(task)))
		return 0;
	__u32 number = cookie & (MAX_FUNCTIONS - 1);
	struct function_desc *desc = bpf_map_lookup_elem(&functions, &number);
	struct library_state *library = library_state_make(task);
	if (!desc || !library) {
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
	if (!library || !desc || !library_returns(task, library, number, sp, now))
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
