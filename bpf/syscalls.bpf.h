/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The syscall layer: one record a call, made when the call returns.
 *
 * At entry only what will be gone or different at the return is kept: the time,
 * the file behind the descriptor (close drops it, dup2 replaces it) and its
 * position. Arguments are still in the registers at the return, and what they
 * point to has been read by the kernel by then, so it is in memory: reading it
 * at entry would fail on pages not yet there.
 */
#include "include/emit.h"
#include "include/call_filter.h"
#include "include/perf_counters.h"
#if HAVE_FAULTS
#include "include/mappings.h"
#endif
#if HAVE_CONTENT
#include "include/content.h"
#endif
#if HAVE_LAYERS
#include "include/cache_state.h"
#endif

/* Most calls that move data have their descriptor where read(2) has it. */
static __always_inline __u64 fd_argument(struct pt_regs *regs, __u32 index, bool compat)
{
	return likely(index == 0 && !compat) ? argument(regs, 0, false)
					     : argument(regs, index, compat);
}

/* Sends the record of the present task, for which there was no room before. */
__noinline int announce(void);

/* What the calls of AIO mean for its operations: aio.bpf.h. `watch`: of enum
 * call_watch. */
#if HAVE_OPERATIONS
int aio_harvest_all(void);
int aio_enter(__u32 watch, __u64 context, __u64 count, __u64 iocbs);
int aio_exit(__u32 watch, __s64 ret, __u64 count, __u64 array);
#else
static __always_inline int aio_harvest_all(void)
{
	return 0;
}

static __always_inline int aio_enter(__u32 watch, __u64 context, __u64 count, __u64 iocbs)
{
	return 0;
}

static __always_inline int aio_exit(__u32 watch, __s64 ret, __u64 count, __u64 array)
{
	return 0;
}
#endif

/* With these filters most calls are left out by what comes of them: the files of a
 * call are looked at when it turns out at its return to be recorded. */
static __always_inline bool judges_outcome(void)
{
	return filter.errors_only || filter.min_dur_ns;
}

/* Whether that can be done with this call: not when it gives its descriptor up, nor
 * when it may wait long and another thread could give it up meanwhile. */
static __always_inline bool is_noted_late(struct task_struct *task,
					  const volatile struct call_desc *desc)
{
	if (!judges_outcome() || desc->fd == NO_ARG || desc->releases)
		return false;
	return filter.errors_only || !descriptors_are_shared(task);
}

/* RWF_ flags of a write; calls without have none. */
static __always_inline __u32 write_flags(const volatile struct call_desc *desc,
					 struct pt_regs *regs, bool compat)
{
	return desc->iov != NO_ARG && desc->aux != NO_ARG ? argument(regs, desc->aux, compat) : 0;
}

/* The lowest offset at which I/O at the position of `file` that begins now may take place, or
 * a write that appends: the size only grows, but for truncate(). */
static __always_inline __s64 lowest_offset(struct file *file, struct inode *inode, bool appends)
{
	return appends ? READ(inode, i_size) : READ(file, f_pos);
}

/* Keeps the files of a call that begins, and where they are; false when the filters
 * leave the call out. `late`: the call ended at `now`, or is about to, which is 0
 * otherwise. */
static __always_inline bool note_files(struct task_struct *task, struct task_state *state,
				       const volatile struct call_desc *desc, struct pt_regs *regs,
				       bool compat, bool late, __u64 now)
{
	if (desc->fd != NO_ARG) {
		__s32 fd = fd_argument(regs, desc->fd, compat);
		struct file *file = file_of_fd(task, fd);
		state->file_ptr = (__u64)file;
		if (file) {
			struct inode *inode = READ(file, f_inode);
			__u32 mode = READ(inode, i_mode);
			bool storage = type_passes(inode, mode);
			struct file *file2 = NULL;
			if (desc->fd2 != NO_ARG) {
				file2 = file_of_fd(task, argument(regs, desc->fd2, compat));
				state->file2 = 0;
				if (file2) {
					struct inode *inode2 = READ(file2, f_inode);
					storage |= type_passes(inode2, READ(inode2, i_mode));
				}
			}
			if (!storage ||
			    (filters(1 << RULE_PATH) &&
			     !files_pass(state, file, file2, &state->file, &state->file2, now))) {
				return false;
			}
			if (config.detail != DETAIL_RAW && !filters(1 << RULE_PATH)) {
				if (file2)
					state->file2 = handle_of(state, file2, now);
				state->file = handle_of(state, file, now);
			}
			bool moves = desc->flags & (DESC_POSITION | DESC_WRITES) ||
				     desc->iov != NO_ARG || desc->offset_ptr != NO_ARG ||
				     desc->seeks || desc->releases;
			if (!config.counters && moves && is_seekable(mode)) {
				state->call_flags |= STASH_SEEKABLE;
				bool appends = desc->flags & DESC_WRITES &&
					       write_appends(file, write_flags(desc, regs, compat));
				if (appends)
					state->call_flags |= STASH_APPEND;
				/* Of a call that ended it would be the highest. One
				 * that fails does not move it. */
				if (!late || filter.errors_only)
					state->entry_pos = lowest_offset(file, inode, appends);
				if (position_is_shared(task, file))
					state->call_flags |= STASH_SHARED;
			}
			if (!config.counters && !late && file2)
				state->entry_pos2 = READ(file2, f_pos);
		} else {
			if (nothing_passes())
				return false;
			state->file2 = 0;
		}
	} else if (nothing_passes() && !names_file(desc)) {
		return false;
	}
	return true;
}

/* The same for a call that has been entered before. */
static __noinline bool note_files_late(struct task_struct *task, struct task_state *state,
				       struct pt_regs *regs, __u64 now)
{
	bool compat = COMPAT_CALLS && state->call_flags & STASH_COMPAT;
	const volatile struct call_desc *desc = desc_of(state->number, compat);
	state->call_flags &= ~STASH_LATE;
	return note_files(task, state, desc, regs, compat, true, now);
}

/* `regs` may be null: they are looked for then. */
static __always_inline int enter(struct pt_regs *regs, long id)
{
	if ((__u64)id >= MAX_NUMBERS)
		return 0;
	struct task_struct *task = current_task();
	bool compat = is_compat(task);
	if (!COMPAT_CALLS && compat) {
		if (task_state_of(task))
			COUNT(compat);
		return 0;
	}
	compat = COMPAT_CALLS && compat;
	const volatile struct call_desc *desc = desc_of(id, compat);
	if (!desc->selected)
		return 0;
	if (is_left(task))
		return 0;
	struct task_state *state = task_state_of(task);
	if (!is_recorded(state)) {
		remember_left();
		return 0;
	}
	if (unlikely(state->flags != TASK_ANNOUNCED))
		announce();
	if (!regs)
		regs = task_registers(task, id);
	if (!regs)
		return 0;
	__u64 aio_ns = 0;
	if (HAVE_OPERATIONS && config.aio && unlikely(desc->selected & ~WATCH_CALL)) {
		__u64 before = bpf_ktime_get_ns();
		if (desc->selected & WATCH_AIO_EXIT)
			aio_harvest_all();
		else
			aio_enter(desc->selected, argument(regs, 0, false),
				  argument(regs, 1, false), argument(regs, 2, false));
		if (!(desc->selected & WATCH_CALL))
			return 0;
		aio_ns = bpf_ktime_get_ns() - before;
		state->aio_ns = aio_ns;
	}
	/* One call in COST_SAMPLE is timed: what the programs themselves take. */
	__u64 began = state->calls++ & (COST_SAMPLE - 1) ? 0 : bpf_ktime_get_ns();
	state->number = id;
	state->file = 0;
	state->noted = 0;
	state->call_flags = compat ? STASH_COMPAT : 0;
	if (is_noted_late(task, desc)) {
		state->call_flags |= STASH_LATE;
		if (!filter.errors_only) {
			state->entry_pos = NO_OFFSET;
			state->entry_pos2 = NO_OFFSET;
			struct file *file =
				desc->flags & (DESC_POSITION | DESC_WRITES)
					? file_of_fd(task, fd_argument(regs, desc->fd, compat))
					: NULL;
			if (file)
				state->entry_pos = lowest_offset(
					file, READ(file, f_inode),
					desc->flags & DESC_WRITES &&
						write_appends(file,
							      write_flags(desc, regs, compat)));
		}
	} else if (!note_files(task, state, desc, regs, compat, false, 0)) {
		state->enter_ns = 0;
		state->call_flags = STASH_LEFT_OUT;
		return 0;
	}
#if HAVE_LAYERS
	if (layer_config.counts)
		cache_reset(&state->layers);
#endif
	if (config.perf_counters)
		perf_begins(&state->perf);
	/* Last, so that what is done above does not count as the call's time. */
	__u64 now = bpf_ktime_get_ns();
	state->enter_ns = now - aio_ns;
	state->timed_ns = began ? now - began : 0;
	return 0;
}

struct iov_sum {
	__u64 address;
	__u64 count;
	__u64 compat; /* segments of 8 bytes */
	__u64 sum;
};

/* What lies on the stack at a time: older kernels have little of it. */
enum { IOV_CHUNK = FATHOM_KERNEL >= 613 || !HAVE_LOOPS ? 8 : 4 };

/* A segment of more bytes than that is none that a program means: a sum of IOV_MAX
 * of them would not fit 63 bits. */
enum { SEGMENT_BITS = 53 };

/* Bytes of segment `i`, whose bits go to *all, too. */
static __always_inline __u64 segment_bytes(__u64 *iov, int i, bool compat, __u64 *all)
{
	__u64 bytes = compat ? iov[i] >> 32 : iov[2 * i + 1];
	*all |= bytes;
	return bytes;
}

/* Bytes that the first segments of a vector ask for, IOV_CHUNK of them at most;
 * NO_SIZE when they can't be read. */
__noinline __u64 iov_chunk(__u64 address, __u64 count, bool compat)
{
	/* struct iovec: base and length. */
	__u64 iov[2 * IOV_CHUNK];
	__u64 sum = 0, all = 0;
	__builtin_memset(iov, 0, sizeof(iov));
	__u64 bytes = count < IOV_CHUNK ? count : IOV_CHUNK;
	bytes *= compat ? 8 : 16;
	/* Compared right before the call: older verifiers do not carry bounds
	 * through the product. */
	barrier_var(bytes);
	if (bytes > sizeof(iov))
		bytes = sizeof(iov);
	if (bpf_probe_read_user(iov, bytes, (void *)address))
		return NO_SIZE;
#pragma unroll
	for (int i = 0; i < IOV_CHUNK; i++)
		/* Of a 32-bit program: both in one word. */
		sum += segment_bytes(iov, i, compat, &all);
	/* More than a sum of them can hold. */
	return all >> SEGMENT_BITS ? NO_SIZE : sum;
}

static long iov_step(__u64 index, struct iov_sum *s)
{
	__u64 done = index * IOV_CHUNK;
	if (done >= s->count)
		return 1;
	__u64 bytes =
		iov_chunk(s->address + (s->compat ? 8 : 16) * done, s->count - done, s->compat);
	s->sum = bytes == NO_SIZE ? NO_SIZE : s->sum + bytes;
	return bytes == NO_SIZE;
}

/* Bytes that a vector asks for; NO_SIZE when it can't be read. */
__noinline __u64 iov_bytes(__u64 address, __u64 count, bool compat)
{
	struct iov_sum s = { .address = address, .count = count, .compat = compat };
	if (count <= IOV_CHUNK)
		return iov_chunk(address, count, compat);
	if (count > IOV_MAX)
		return NO_SIZE;
	LOOP(IOV_MAX / IOV_CHUNK, iov_step, &s);
	return s.sum;
}

/* A position that the program passed by pointer, as it was before the call
 * moved it. */
static __always_inline __s64 offset_by_pointer(__u64 address, __s64 ret)
{
	__s64 after;
	if (bpf_probe_read_user(&after, sizeof(after), (void *)address))
		return NO_OFFSET;
	return ret > 0 ? after - ret : after;
}

/* Where I/O at the descriptor's own position began, seen after it; `entry_pos` is the position
 * before. When others may move it and it is another, that is not known. */
static __always_inline __s64 offset_at_position(struct task_struct *task, struct file *file,
						__s64 ret, __s64 entry_pos,
						struct call_record *call)
{
	if (!is_seekable(file_mode(file)))
		return NO_OFFSET;
	__s64 position = READ(file, f_pos);
	if (ret > 0)
		position -= ret;
	if (position == entry_pos || !position_is_shared(task, file))
		return position;
	call->flags |= CALL_POSITION_RACED;
	return NO_OFFSET;
}

/* The handle of the directory that a path of the present task starts from: for an
 * `absolute` one its root, 0 when that is the one of its mount namespace. */
VERIFIED_ONCE int start_of_path(struct task_state *state, __s32 dirfd, bool absolute, __u64 now)
{
	struct task_struct *task = current_task();
	if (!state)
		return 0;
	if (absolute)
		return handle_of_root(state, task, now);
	if (dirfd == AT_FDCWD)
		return handle_of_directory(state, task, false, now);
	struct file *file = file_of_fd(task, dirfd);
	return file ? handle_of(state, file, now) : 0;
}

/* Appends the string at `address` to the record at `at`; returns its length, a
 * negative number when it can't be read, MAX_PATH when it is longer than what was
 * read, which are MAX_PATH - 1 bytes then. An empty one has no length in older
 * kernels, and counts its end in newer ones. */
static __always_inline long append_string(struct scratch *scratch, __u32 at, __u64 address)
{
	long n = bpf_probe_read_user_str(scratch->data + (at & (SCRATCH_BYTES / 2 - 1)), MAX_PATH,
					 (void *)address);
	if (unlikely(n == MAX_PATH)) {
		char last = 1;
		bpf_probe_read_user(&last, 1, (void *)(address + MAX_PATH - 1));
		if (last)
			return n;
	}
	/* Right here: older verifiers forget what was compared elsewhere. */
	return n - (n > 0);
}

/* struct stat begins with st_dev and st_ino; struct statx: include/uapi/linux/stat.h. */
enum { STATX_INO_AT = 0x20, STATX_DEV_AT = 0x88 };

/* Bytes of the struct that a command of fcntl takes, 0 when it takes none: struct
 * flock, struct f_owner_ex, a hint of 64 bits. */
static __always_inline __u32 bytes_of_command(__u32 command)
{
	if ((command >= F_GETLK && command <= F_SETLKW) ||
	    (command >= F_OFD_GETLK && command <= F_OFD_SETLKW))
		return 32;
	if (command == F_SETOWN_EX || command == F_GETOWN_EX ||
	    (command >= F_GET_RW_HINT && command <= F_SET_FILE_RW_HINT))
		return 8;
	return 0;
}

/* The arguments of a call, in map memory: one of them is then taken without a branch for
 * each place that it may be in, which the verifier would follow every time. */
static __always_inline void keep_arguments(struct task_state *state, struct pt_regs *regs,
					   bool compat)
{
#pragma unroll
	for (int i = 0; i < 6; i++)
		state->args[i] = argument(regs, i, compat);
}

static __always_inline __u64 kept_argument(struct task_state *state, __u32 index)
{
	return state->args[index & 7];
}

/* A number of 64 bits, which 32-bit programs pass in two registers; one without
 * an upper half is signed. */
static __always_inline __u64 kept_long_argument(struct task_state *state, __u32 low, __u32 high,
						bool compat)
{
	__u64 value = kept_argument(state, low);
	if (unlikely(compat))
		value = high >= SIGNED_ARG ? (__u64)(__s64)(__s32)value
					   : value | kept_argument(state, high) << 32;
	return value;
}

/* As glibc's makedev. */
static __always_inline __u64 device_number(__u32 major, __u32 minor)
{
	return (minor & 0xff) | ((major & 0xfff) << 8) | ((__u64)(minor & ~0xff) << 12);
}

/* Reads the struct that an argument points to, and takes device and inode from one
 * of stat; appends it if it is to be kept (`full`) and returns where the next bytes
 * go. Not for 32-bit programs, whose structs are others. */
static __always_inline __u32 append_struct(struct task_state *state, struct scratch *scratch,
					   struct wide_call_record *record,
					   const volatile struct call_desc *desc,
					   struct call_record *call, __u32 at, bool full)
{
	__u64 address;
	__u32 bytes;
	if (desc->lock != NO_ARG) {
		bytes = bytes_of_command(call->aux);
		address = kept_argument(state, desc->lock);
	} else {
		bytes = desc->structure_bytes;
		address = kept_argument(state, desc->structure);
		if (desc->structure_out && call->ret < 0)
			bytes = 0;
	}
	if (!address)
		record->arg_flags |= ARG_STRUCT_NULL;
	/* Behind two paths, or a path and a name of that length. */
	if (!address || !bytes || at >= SCRATCH_BYTES / 2)
		return at;
	at &= SCRATCH_BYTES / 2 - 1;
	__u8 *data = scratch->data + at;
	/* Right before the call: older verifiers forget bounds. */
	barrier_var(bytes);
	bytes &= 255;
	if (bpf_probe_read_user(data, bytes, (void *)address))
		return at;
	if (desc->stat != NO_ARG) {
		record->stat_dev = *(__u64 *)data;
		record->stat_ino = *(__u64 *)(data + 8);
		call->flags |= CALL_HAS_STAT;
	} else if (desc->statx != NO_ARG) {
		record->stat_dev = device_number(*(__u32 *)(data + STATX_DEV_AT),
						 *(__u32 *)(data + STATX_DEV_AT + 4));
		record->stat_ino = *(__u64 *)(data + STATX_INO_AT);
		call->flags |= CALL_HAS_STAT;
	}
	if (!full)
		return at;
	record->struct_len = bytes;
	return at + bytes;
}

/* Whether the descriptor before a path stands for the file: with AT_EMPTY_PATH,
 * which has another meaning among the flags of open, and an empty path, or a null
 * one. Some calls take a null one without that flag, but from a descriptor only. */
static __always_inline bool is_descriptor(struct task_state *state,
					  const volatile struct call_desc *desc,
					  struct wide_call_record *record)
{
	char first;
	if (!desc->path1 || desc->dirfd1 == NO_ARG || desc->flags & DESC_RET_FD)
		return false;
	__u64 address = kept_argument(state, desc->string1);
	/* Where it does not, the kernel finds no path at address 0. */
	if (!address && record->call.ret == -EFAULT)
		return false;
	if (!address && desc->null_path)
		return record->dirfd1 != AT_FDCWD;
	if (!(record->call.aux & AT_EMPTY_PATH))
		return false;
	return !address || (!bpf_probe_read_user(&first, 1, (void *)address) && !first);
}

/* Appends a text to the record at `at`; returns where the next bytes go. */
static __always_inline __u32 append_text(struct scratch *scratch, struct wide_call_record *record,
					 __u64 address, __u32 at)
{
	if (!address) {
		record->arg_flags |= ARG_STRING3_NULL;
		return at;
	}
	/* Behind a path and a text of that length. */
	if (at >= SCRATCH_BYTES / 2) {
		record->arg_flags |= ARG_STRING3_PARTIAL;
		return at;
	}
	at &= SCRATCH_BYTES / 2 - 1;
	long n = bpf_probe_read_user_str(scratch->data + at, MAX_TEXT, (void *)address);
	if (n < 0 || n >= MAX_TEXT)
		record->arg_flags |= ARG_STRING3_PARTIAL;
	n -= n > 0;
	if (n <= 0)
		return at;
	n &= MAX_TEXT - 1;
	record->string3_len = n;
	return at + n;
}

/* The same for the value of an extended attribute that the call took or gave. */
static __always_inline __u32 append_value(struct task_state *state, struct scratch *scratch,
					  struct wide_call_record *record,
					  const volatile struct call_desc *desc,
					  struct call_record *call, __u32 at)
{
	__u64 address = kept_argument(state, desc->value);
	__u64 bytes = desc->flags & DESC_RET_BYTES ? (__u64)call->ret : call->size;
	/* Asked with size 0, getxattr tells the size only. */
	if (call->ret < 0 || !call->size || !address || at >= SCRATCH_BYTES / 2)
		return at;
	at &= SCRATCH_BYTES / 2 - 1;
	if (bytes >= MAX_TEXT) {
		record->arg_flags |= ARG_STRING3_PARTIAL;
		bytes = MAX_TEXT - 1;
	}
	/* Right before the call: older verifiers forget bounds. */
	barrier_var(bytes);
	bytes &= MAX_TEXT - 1;
	if (bpf_probe_read_user(scratch->data + at, bytes, (void *)address))
		return at;
	record->arg_flags |= ARG_VALUE;
	record->string3_len = bytes;
	return at + bytes;
}

/* Reads struct open_how: flags, mode, resolve. The kernel reads it when `bytes` is
 * what it may be. */
static __always_inline bool read_how(__u64 *how, __u64 address, __u64 bytes)
{
	enum { HOW_BYTES = 24, MOST_BYTES = 4096 };
	return bytes >= HOW_BYTES && bytes <= MOST_BYTES &&
	       !bpf_probe_read_user(how, HOW_BYTES, (void *)address);
}

/* Takes device and inode from struct statx. */
static __always_inline bool read_statx(struct wide_call_record *record, __u64 address)
{
	__u32 dev[2] = {};
	__u64 ino = 0;
	if (bpf_probe_read_user(&ino, 8, (void *)address + STATX_INO_AT) ||
	    bpf_probe_read_user(dev, 8, (void *)address + STATX_DEV_AT))
		return false;
	record->stat_dev = device_number(dev[0], dev[1]);
	record->stat_ino = ino;
	return true;
}

static __always_inline __u64 call_end(struct call_record *call)
{
	return call->ts_ns + call->dur_ns;
}

/* The record that is made in `scratch`, of the call that `state` holds. */
static __always_inline struct wide_call_record *wide_of(struct scratch *scratch)
{
	return (void *)scratch->data;
}

static __always_inline const volatile struct call_desc *desc_of_state(struct task_state *state)
{
	return desc_of(state->number, COMPAT_CALLS && state->call_flags & STASH_COMPAT);
}

/* The parts of a wide record are functions of their own, and where the next bytes go lies in
 * map memory (scratch->walk.at): the verifier follows each once, not once for every way
 * through those before. */

/* Numbers, and where I/O took place. */
static __always_inline void add_numbers(struct task_state *state, struct wide_call_record *record,
					const volatile struct call_desc *desc, bool pending)
{
	bool compat = COMPAT_CALLS && state->call_flags & STASH_COMPAT;
	struct call_record *call = &record->call;
	bool user_memory = config.detail != DETAIL_RAW && !pending;
	if (desc->extra[0] != NO_ARG)
		record->extra[0] = kept_argument(state, desc->extra[0]);
	if (desc->extra[1] != NO_ARG)
		record->extra[1] = kept_argument(state, desc->extra[1]);
	if (desc->extra[2] != NO_ARG)
		record->extra[2] = kept_argument(state, desc->extra[2]);
	if (compat && desc->signed_extra) {
#pragma unroll
		for (int i = 0; i < MAX_EXTRA; i++)
			if (desc->signed_extra >> i & 1)
				record->extra[i] = (__s64)(__s32)record->extra[i];
	}
	if (call->flags & CALL_POSITION_RACED)
		record->extra[0] = state->entry_pos;
	if (state->call_flags & STASH_SEGMENTS) {
		record->extra[1] = kept_argument(state, desc->iovcnt);
		record->arg_flags |= ARG_SEGMENTS;
	}
	if (desc->how != NO_ARG && user_memory &&
	    read_how(record->extra, kept_argument(state, desc->how),
		     kept_argument(state, desc->size)))
		call->flags |= CALL_HAS_HOW;
	if (state->call_flags & STASH_BEFORE)
		record->op_flags = OP_STARTED_BEFORE_TRACE;
	if (desc->offset_ptr != NO_ARG) {
		__u64 address = kept_argument(state, desc->offset_ptr);
		if (address) {
			if (user_memory)
				call->offset = offset_by_pointer(address, call->ret);
		} else {
			record->arg_flags |= ARG_OFFSET_NULL;
			struct file *file = file_of_fd(current_task(), call->fd);
			if (file && (__u64)file == state->file_ptr)
				call->offset = offset_at_position(current_task(), file, call->ret,
								  state->entry_pos, call);
		}
	}
	if (desc->fd2 != NO_ARG) {
		record->fd2 = kept_argument(state, desc->fd2);
		record->file2 = state->file2;
		__u64 address =
			desc->offset_ptr2 != NO_ARG ? kept_argument(state, desc->offset_ptr2) : 0;
		if (address) {
			if (user_memory)
				record->offset2 = offset_by_pointer(address, call->ret);
		} else {
			if (desc->offset_ptr2 != NO_ARG)
				record->arg_flags |= ARG_OFFSET2_NULL;
			struct file *file = file_of_fd(current_task(), record->fd2);
			if (file)
				record->offset2 = offset_at_position(
					current_task(), file, call->ret, state->entry_pos2, call);
		}
	}
}

/* The first text, a path as a rule. */
VERIFIED_ONCE int add_string1(struct task_state *state, struct scratch *scratch)
{
	if (!state || !scratch)
		return 0;
	const volatile struct call_desc *desc = desc_of_state(state);
	struct wide_call_record *record = wide_of(scratch);
	struct call_record *call = &record->call;
	bool full = config.detail == DETAIL_FULL;
	__u32 at = scratch->walk.at & (SCRATCH_BYTES / 2 - 1);
	__u64 address = kept_argument(state, desc->string1);
	record->dirfd1 = desc->dirfd1 != NO_ARG ? kept_argument(state, desc->dirfd1) : AT_FDCWD;
	if (full && desc->dirfd1 != NO_ARG)
		record->at1 = start_of_path(state, record->dirfd1, false, call_end(call));
	long n = full && address ? append_string(scratch, at, address) : -1;
	/* Without strings the file behind a descriptor is still named. */
	if ((!address || config.detail == DETAIL_FDS) && config.detail != DETAIL_RAW &&
	    is_descriptor(state, desc, record))
		n = 0;
	if (!address)
		record->arg_flags |= ARG_STRING1_NULL;
	if (n < 0 || n >= MAX_PATH)
		call->flags |= CALL_STRING1_PARTIAL;
	if (n < 0)
		return 0;
	if (n >= MAX_PATH)
		n = MAX_PATH - 1;
	record->string1_len = n;
	scratch->walk.at = at + n;
	if (desc->path1) {
		bool in_root = call->flags & CALL_HAS_HOW && record->extra[2] & RESOLVE_IN_ROOT;
		bool absolute = n > 0 && scratch->data[at] == '/';
		if (absolute && !in_root)
			record->dir1 = record->root;
		else if (record->at1)
			record->dir1 = record->at1;
		else
			record->dir1 =
				start_of_path(state, record->dirfd1, false, call_end(call));
		if (in_root)
			record->root = record->dir1;
	}
	return 0;
}

/* The second one. */
VERIFIED_ONCE int add_string2(struct task_state *state, struct scratch *scratch)
{
	if (!state || !scratch)
		return 0;
	const volatile struct call_desc *desc = desc_of_state(state);
	struct wide_call_record *record = wide_of(scratch);
	struct call_record *call = &record->call;
	bool full = config.detail == DETAIL_FULL;
	__u32 at = scratch->walk.at & (SCRATCH_BYTES / 2 - 1);
	__u64 address = kept_argument(state, desc->string2);
	record->dirfd2 = desc->dirfd2 != NO_ARG ? kept_argument(state, desc->dirfd2) : AT_FDCWD;
	if (full && desc->dirfd2 != NO_ARG)
		record->at2 = start_of_path(state, record->dirfd2, false, call_end(call));
	long n = full && address ? append_string(scratch, at, address) : -1;
	if (!address)
		record->arg_flags |= ARG_STRING2_NULL;
	if (n < 0 || n >= MAX_PATH)
		call->flags |= CALL_STRING2_PARTIAL;
	if (n < 0)
		return 0;
	if (n >= MAX_PATH)
		n = MAX_PATH - 1;
	record->string2_len = n;
	scratch->walk.at = at + n;
	if (desc->path2) {
		if (n > 0 && scratch->data[at] == '/')
			record->dir2 = record->root;
		else if (record->at2)
			record->dir2 = record->at2;
		else
			record->dir2 =
				start_of_path(state, record->dirfd2, false, call_end(call));
	}
	return 0;
}

/* A further text, and what an argument points to. */
VERIFIED_ONCE int add_structures(struct task_state *state, struct scratch *scratch)
{
	if (!state || !scratch)
		return 0;
	bool compat = COMPAT_CALLS && state->call_flags & STASH_COMPAT;
	const volatile struct call_desc *desc = desc_of_state(state);
	struct wide_call_record *record = wide_of(scratch);
	struct call_record *call = &record->call;
	bool full = config.detail == DETAIL_FULL;
	if (full && desc->string3 != NO_ARG)
		scratch->walk.at = append_text(scratch, record, kept_argument(state, desc->string3),
					       scratch->walk.at);
	if (config.content == CONTENT_MODE_PLAIN && full && desc->value != NO_ARG)
		scratch->walk.at =
			append_value(state, scratch, record, desc, call, scratch->walk.at);
	if (!compat && (desc->structure != NO_ARG || desc->lock != NO_ARG)) {
		scratch->walk.at =
			append_struct(state, scratch, record, desc, call, scratch->walk.at, full);
	} else if (compat && call->ret == 0) {
		if (desc->stat != NO_ARG) {
			__u64 address = kept_argument(state, desc->stat);
			__u64 dev = 0, ino = 0;
			if (!bpf_probe_read_user(&dev, 8, (void *)address) &&
			    !bpf_probe_read_user(&ino, 8, (void *)address + desc->stat_ino)) {
				record->stat_dev = dev;
				record->stat_ino = ino;
				call->flags |= CALL_HAS_STAT;
			}
		} else if (desc->statx != NO_ARG) {
			if (read_statx(record, kept_argument(state, desc->statx)))
				call->flags |= CALL_HAS_STAT;
		}
	}
	return 0;
}

/* Sends the call that `state` holds, with its arguments and all that has no room in its
 * record, made in `scratch`; whether it was sent. */
static __always_inline bool send_wide(struct task_state *state, struct scratch *scratch,
				      bool pending)
{
	const volatile struct call_desc *desc = desc_of_state(state);
	struct wide_call_record *record = wide_of(scratch);
	__builtin_memset(record, 0, sizeof(*record));
	/* In map memory from here on: of what lies on the stack the verifier
	 * would follow every combination. */
	record->call = state->call;
	struct call_record *call = &record->call;
	call->kind = RECORD_WIDE_CALL;
	record->fd2 = -1;
	record->offset2 = NO_OFFSET;
	if (config.detail != DETAIL_FULL)
		call->flags |= CALL_NO_STRINGS;
#if HAVE_LAYERS
	/* 0 where the layer is not recorded. */
	if (!pending)
		record->cache = state->layers.cache;
#endif
	scratch->walk.at = sizeof(*record);
	add_numbers(state, record, desc, pending);
	/* A call that has not returned may not have read its strings. */
	if (pending) {
		if (desc->string1 != NO_ARG) {
			call->flags |= CALL_STRING1_PARTIAL;
			if (!kept_argument(state, desc->string1))
				record->arg_flags |= ARG_STRING1_NULL;
			record->dirfd1 = desc->dirfd1 != NO_ARG
						 ? kept_argument(state, desc->dirfd1)
						 : AT_FDCWD;
		}
		if (desc->string2 != NO_ARG) {
			call->flags |= CALL_STRING2_PARTIAL;
			if (!kept_argument(state, desc->string2))
				record->arg_flags |= ARG_STRING2_NULL;
			record->dirfd2 = desc->dirfd2 != NO_ARG
						 ? kept_argument(state, desc->dirfd2)
						 : AT_FDCWD;
		}
	} else {
		if ((desc->path1 || desc->path2) && config.detail != DETAIL_RAW)
			record->root = start_of_path(state, AT_FDCWD, true, call_end(call));
		if (desc->string1 != NO_ARG)
			add_string1(state, scratch);
		if (desc->string2 != NO_ARG)
			add_string2(state, scratch);
		if (config.detail != DETAIL_RAW)
			add_structures(state, scratch);
	}
	if (desc->string3 != NO_ARG && (pending || config.detail != DETAIL_FULL))
		record->arg_flags |= ARG_STRING3_PARTIAL;
	return wide_output(scratch->data, scratch->walk.at & (SCRATCH_BYTES - 1));
}

VERIFIED_ONCE int wide_record(struct task_state *state, struct scratch *scratch)
{
	return state && scratch ? send_wide(state, scratch, false) : false;
}

VERIFIED_ONCE int wide_record_pending(struct task_state *state, struct scratch *scratch)
{
	return state && scratch ? send_wide(state, scratch, true) : false;
}

static __always_inline bool wide_call(struct task_state *state, bool pending)
{
	struct scratch *scratch = scratch_get();
	if (!scratch) {
		COUNT(scratch_busy);
		return false;
	}
	bool sent = pending ? wide_record_pending(state, scratch) : wide_record(state, scratch);
	scratch_put(scratch);
	return sent;
}

#if HAVE_CONTENT
/* Sends a call that moved data, with its content. */
static __noinline bool data_call(struct task_state *state, struct call_record *call)
{
	const volatile struct call_desc *desc = desc_of(state->number, false);
	struct content_source from = {
		.bytes = call->ret,
	};
	if (desc->buf != NO_ARG) {
		from.address = kept_argument(state, desc->buf);
		from.left = call->ret;
	} else {
		from.iov = kept_argument(state, desc->iov);
		from.segments = kept_argument(state, desc->iovcnt);
	}
	return content_output(call, &state->layers.cache, state->entry_pos, &from);
}
#endif

/* Makes the record of the call that `state` holds. */
static __always_inline void complete(struct task_struct *task, struct task_state *state,
				     struct pt_regs *regs, __s64 ret, __u64 now, bool pending)
{
	bool compat = COMPAT_CALLS && state->call_flags & STASH_COMPAT;
	const volatile struct call_desc *desc = desc_of(state->number, compat);
	__u32 flags = desc->flags;
	/* Not on the stack, of which older kernels have little. */
	struct call_record *call = &state->call;
	call->kind = RECORD_CALL;
	call->flags = pending ? CALL_PENDING : 0;
	call->syscall = desc->syscall;
	call->fd = -1;
	call->ts_ns = state->enter_ns;
	call->dur_ns = now - state->enter_ns;
	call->pid = READ_TYPED(task, tgid);
	call->tid = READ_TYPED(task, pid);
	call->ret = ret;
	call->file = state->file;
	call->aux = 0;
	call->offset = NO_OFFSET;
	call->size = NO_SIZE;
	state->enter_ns = 0;
	keep_arguments(state, regs, compat);

	bool wide = flags & DESC_WIDE || unlikely(state->call_flags & STASH_BEFORE);
	if (desc->fd != NO_ARG) {
		call->fd = kept_argument(state, desc->fd);
		/* When another thread gave the descriptor to another file
		 * meanwhile, nobody can tell which of the two the call found. */
		if (!desc->releases && !pending &&
		    (descriptors_are_shared(task) || state->call_flags & STASH_BEFORE)) {
			struct file *file = file_of_fd(task, call->fd);
			if (file && (__u64)file != state->file_ptr)
				call->file = 0;
		}
	} else if (desc->ring != NO_ARG)
		call->fd = kept_argument(state, desc->ring);
	if (desc->size != NO_ARG)
		call->size = likely(desc->size_hi == NO_ARG)
				     ? kept_argument(state, desc->size)
				     : kept_long_argument(state, desc->size, desc->size_hi, compat);
	if (config.counters || config.tail) {
		if (flags & DESC_RET_FD && ret >= 0 && config.detail != DETAIL_RAW && !pending) {
			struct file *file = file_of_fd(task, ret);
			if (file)
				call->file = handle_of(state, file, now);
		}
		if (config.counters) {
			if (!pending)
				count_call(call, flags);
			return;
		}
		/* One that began before the recording is pending in another sense. */
		if (!pending && !(state->call_flags & STASH_BEFORE) &&
		    counted_instead(call, flags, state->noted)) {
			state->perf.stage = PERF_NOT;
			return;
		}
	}
	if (desc->aux != NO_ARG)
		call->aux = kept_argument(state, desc->aux);
	bool at_position = flags & DESC_POSITION;
	if (desc->offset != NO_ARG) {
		call->offset = kept_long_argument(state, desc->offset, desc->offset_hi, compat)
			       << desc->offset_shift;
		/* preadv2 and pwritev2: -1 stands for the position. */
		if (call->offset == -1 && desc->iov != NO_ARG)
			at_position = true;
	}
	if (desc->iov != NO_ARG) {
		__u64 segments = kept_argument(state, desc->iovcnt);
		if (config.detail != DETAIL_RAW && !pending)
			call->size = iov_bytes(kept_argument(state, desc->iov), segments, compat);
		if (likely(!(call->size >> SEGMENTS_SHIFT) && segments < 0xffff)) {
			call->size |= segments << SEGMENTS_SHIFT;
		} else {
			state->call_flags |= STASH_SEGMENTS;
			wide = true;
		}
	}
	if (desc->seeks || desc->releases) {
		if (state->call_flags & STASH_SHARED && ret >= 0 && !pending) {
			__u32 description = state->file_ptr >> 6;
			call->flags |= CALL_SHARED_POSITION;
			if (desc->seeks)
				call->size = description;
			else
				call->aux = description;
		}
	} else if (state->call_flags & STASH_SEEKABLE) {
		bool appends = state->call_flags & STASH_APPEND;
		bool shared = state->call_flags & STASH_SHARED;
		struct file *file = pending ? NULL : file_of_fd(task, call->fd);
		bool same = file && (__u64)file == state->file_ptr;
		if (ret <= 0 || !same) {
			/* Nothing has moved it, or the descriptor is of another file now. */
			if (at_position) {
				__s64 position = same ? READ(file, f_pos) : state->entry_pos;
				bool certain = !shared || (same && position == state->entry_pos);
				call->offset = certain && !appends && (same || pending) ? position
											: NO_OFFSET;
			}
		} else if (at_position) {
			call->offset = READ(file, f_pos) - ret;
			bool raced = shared && call->offset != state->entry_pos;
			if (shared && desc->aux == NO_ARG) {
				call->flags |= CALL_SHARED_POSITION;
				/* Not `file`: arithmetic on a kernel pointer is
				 * refused. */
				call->aux = *(volatile __u64 *)&state->file_ptr >> 6;
			}
			if (raced) {
				call->flags |= CALL_POSITION_RACED;
				if (appends)
					call->flags |= CALL_APPENDS;
				wide = true;
			}
		} else if (appends) {
			/* pwrite(2): Linux appends whatever the offset, and leaves the
			 * position. Others may have appended since. */
			call->offset = READ(READ(file, f_inode), i_size) - ret;
			if (call->offset != state->entry_pos) {
				call->offset = NO_OFFSET;
				call->flags |= CALL_POSITION_RACED;
				wide = true;
			}
		}
	} else if (at_position) {
		call->offset = NO_OFFSET;
	}
	/* The descriptor that was made, or that of a ring when nothing else has a path. */
	bool shown = desc->ring != NO_ARG && !desc->path1 && !(flags & DESC_RET_FD);
	__s64 fd = flags & DESC_RET_FD ? ret : shown ? call->fd : -1;
	if (fd >= 0 && config.detail != DETAIL_RAW && !pending) {
		struct file *file = file_of_fd(task, fd);
		if (file)
			call->file = handle_of(state, file, now);
	}
	if (flags & DESC_CHDIR && ret == 0 && config.detail != DETAIL_RAW && !pending)
		call->file = handle_of_directory(state, task, desc->chroots, now);

#if HAVE_FAULTS
	/* Calls on mapped memory (msync): the file that is mapped there. */
	if (unlikely(desc->mapped != NO_ARG) && config.detail != DETAIL_RAW && !pending) {
		__u64 address = desc->mapped == RESULT_ARG ? (__u64)ret
							   : kept_argument(state, desc->mapped);
		bool busy;
		__u64 found = mapping_at(task, &state->fault, address, false, &busy);
		struct vm_area_struct *vma = KERNEL_OBJECT(vm_area_struct, found);
		struct file *file = found ? mapped_file(vma) : NULL;
		if (file) {
			call->file = handle_of(state, file, now);
			call->offset = mapped_offset(vma, address);
		}
	}
#endif

#if HAVE_LAYERS
	state->layers.op_ns = 0;
	state->layers.iocb = 0;
	bool cached = layer_config.counts && !pending && cache_used(&state->layers);
	if (cached) {
		cache_settle(&state->layers);
		wide = wide || !fits_cached_call(call, &state->layers.cache);
	}
#endif
#if HAVE_CONTENT
	if (config.content && !pending && ret > 0 && (desc->buf != NO_ARG || desc->iov != NO_ARG)) {
		/* Vectors of 32-bit programs are others; such a record does not tell
		 * that the call began before. */
		if (!compat && !(state->call_flags & STASH_BEFORE) && data_call(state, call)) {
			COUNT(wide_calls);
#if HAVE_LAYERS
			if (cached)
				COUNT(caches);
#endif
			if (config.stacks)
				state->stack_ns = call->ts_ns;
			return;
		}
		call->flags |= CALL_NO_CONTENT;
	}
#endif
	bool sent;
	if (wide) {
		sent = wide_call(state, pending);
		if (sent)
			COUNT(wide_calls);
#if HAVE_LAYERS
	} else if (cached) {
		sent = cached_call_output(call, &state->layers.cache);
#endif
	} else {
		sent = slot_output(call);
	}
#if HAVE_LAYERS
	if (cached && sent)
		COUNT(caches);
#endif
	if (unlikely(!sent)) {
		/* Looked up again: before 6.8 the frames of a chain of calls leave no room to
		 * keep it. */
		desc = desc_of(state->number, compat);
		state->perf.stage = PERF_NOT;
		/* A ring is not the file of the call. */
		if (desc->ring != NO_ARG && !desc->path1 && !(desc->flags & DESC_RET_FD))
			call->file = 0;
		lose(call, desc->flags);
	} else if (config.stacks && !pending && !compat) {
		state->stack_ns = call->ts_ns;
	}
}

/* Whether a return without an entry is not to be recorded: the call was left out, or the
 * task has just been taken in and may be in a call whose entry was not seen. */
static __always_inline bool leaves_without_entry(struct task_state *state)
{
	return state->call_flags & (STASH_LEFT_OUT | STASH_BEFORE) ||
	       state->flags != TASK_ANNOUNCED;
}

/* `regs` as for enter(). */
static __always_inline int leave(struct pt_regs *regs, __u32 number, long ret)
{
	if (number >= MAX_NUMBERS)
		return 0;
	struct task_struct *task = current_task();
	bool compat = is_compat(task);
	if (!COMPAT_CALLS && compat)
		return 0;
	compat = COMPAT_CALLS && compat;
	const volatile struct call_desc *desc = desc_of(number, compat);
	/* Where operations are not seen, any call of an io_uring may have made one that renames. */
	if (unlikely(desc->flags & DESC_RENAMES) &&
	    (desc->ring == NO_ARG ? ret == 0 : !HAVE_OPERATIONS && ret >= 0))
		__sync_fetch_and_add(&rename_epoch, 1);
	if (filters(1 << RULE_UID) && unlikely(desc->credentials) && ret == 0)
		reconsider(task);
	if (!desc->selected)
		return 0;
	bool watched = HAVE_OPERATIONS && config.aio && desc->selected & ~WATCH_CALL;
	bool failed = is_error(desc->flags, ret);
	/* The entry that the state holds is then an old one, which seccomp would make
	 * look like that of a call that it answers. */
	if (filter.errors_only && !failed && !watched && !has_seccomp(task))
		return 0;
	struct task_state *state = state_if_recorded(task);
	if (!state)
		return 0;
	/* Most calls that filters leave out end here: before the clock is read. */
	if (!watched && !state->enter_ns && leaves_without_entry(state))
		return 0;
	__u64 now = bpf_ktime_get_ns();
	bool entered = state->enter_ns && state->number == number;
	if (filter.min_dur_ns && entered && !watched && now - state->enter_ns < filter.min_dur_ns) {
		state->enter_ns = 0;
		return 0;
	}
	if (config.perf_counters && entered)
		perf_ends(&state->perf);
	if (!regs)
		regs = task_registers(task, number);
	if (!regs)
		return 0;
	if (unlikely(watched)) {
		bool reaps = desc->selected & WATCH_AIO_REAP;
		/* Never a 32-bit program: its calls are not marked. */
		aio_exit(desc->selected, ret, argument(regs, 1, false),
			 reaps ? argument(regs, 3, false) : argument(regs, 2, false));
		if (!(desc->selected & WATCH_CALL))
			return 0;
		/* The call begins before its operations, but what taking them in
		 * took is not its own. */
		if (entered)
			now -= state->aio_ns;
	}
	if (unlikely(!entered)) {
		/* A return without an entry: seccomp has answered the call. */
		if (leaves_without_entry(state))
			return 0;
		if (desc->fd == NO_ARG ? !names_file(desc) && nothing_passes() : nothing_passes())
			return 0;
		state->enter_ns = now;
		state->number = number;
		state->file = 0;
		state->file2 = 0;
		state->file_ptr = 0;
		state->noted = 0;
		state->call_flags = compat ? STASH_COMPAT : 0;
		state->timed_ns = 0;
		state->perf.stage = PERF_NOT;
	}
	if ((filter.errors_only && !failed) || !call_passes(task, state, regs, ret, now, false) ||
	    (judges_outcome() && state->call_flags & STASH_LATE &&
	     !note_files_late(task, state, regs, now))) {
		state->enter_ns = 0;
		return 0;
	}
	complete(task, state, regs, ret, now, false);
	if (config.perf_counters)
		perf_output(&state->perf, state->call.ts_ns, state->call.dur_ns, state->call.pid,
			    state->call.tid);
	if (unlikely(state->timed_ns)) {
		struct cpu_stats *counters = cpu_stats();
		if (counters) {
			__u64 spent = state->timed_ns + (bpf_ktime_get_ns() - now);
			__sync_fetch_and_add(&counters->cost_ns, spent);
			__sync_fetch_and_add(&counters->cost_calls, 1);
		}
	}
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long id)
{
	return enter(regs, id);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long ret)
{
	return leave(regs, syscall_number(regs), ret);
}

#if HAVE_CLASSIC
SEC("tracepoint/raw_syscalls/sys_enter")
int sys_enter_classic(struct trace_event_raw_sys_enter *ctx)
{
	return enter(NULL, ctx->id);
}

SEC("tracepoint/raw_syscalls/sys_exit")
int sys_exit_classic(struct trace_event_raw_sys_exit *ctx)
{
	return leave(NULL, ctx->id, ctx->ret);
}
#endif
