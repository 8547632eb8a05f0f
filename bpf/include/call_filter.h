/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Filters of calls: by the files that they work on, by their paths, by what
 * came of them. A call on a descriptor is judged at its entry, one that is
 * given a path at its return: an open then has a file, which has one path
 * however it was reached.
 */
#ifndef FATHOM_CALL_FILTER_H
#define FATHOM_CALL_FILTER_H

#include "files.h"
#include "registers.h"

static __always_inline const volatile struct call_desc *desc_of_state(struct task_state *state)
{
	return desc_of(state->number, COMPAT_CALLS && state->call_flags & STASH_COMPAT);
}

/* Whether calls on a file of this type are recorded. */
static __always_inline bool type_passes(struct inode *inode, __u32 mode)
{
	if (filter.file_types) {
		/* An anonymous inode has the bit of no type; what else it could be is
		 * worth a look only when one of the two is asked for. */
		__u32 bits = 1 | 1 << ((mode & S_IFMT) >> 12);
		return filter.file_types & bits && filter.file_types & type_bit(inode);
	}
	if (config.sockets && ((mode & S_IFMT) == S_IFSOCK || (mode & S_IFMT) == S_IFIFO))
		return true;
	return config.all_file_types || is_storage(inode, mode);
}

/* Calls that have no file, or none that is known, are not recorded. */
static __always_inline bool nothing_passes(void)
{
	return filter.known_types || filter.takes & (1 << RULE_PATH);
}

/* Whether the call is given a path, or makes a descriptor out of nothing. */
static __always_inline bool names_file(const volatile struct call_desc *desc)
{
	return desc->path1 || desc->path2 || desc->flags & DESC_RET_FD;
}

/* Judges the files of a call by their paths. When one passes the call does, and
 * both get their handles. `now` as for cached_name(). */
static __always_inline bool files_pass(struct task_state *state, struct file *file,
				       struct file *file2, __u32 *handle, __u32 *handle2, __u64 now)
{
	struct cached_file *cached = cached_file(state, file, now, false);
	bool pass = cached->verdict != VERDICT_LEFT;
	*handle = cached->handle;
	if (!file2)
		return pass;
	cached = cached_file(state, file2, now, pass);
	bool pass2 = cached->verdict != VERDICT_LEFT;
	*handle2 = cached->handle;
	if (pass2 && !pass)
		*handle = handle_of(state, file, now);
	return pass || pass2;
}

#if HAVE_LOOPS
/* An argument lies behind the path of the directory that it starts from. */
enum { ARGUMENT_AT = SCRATCH_BYTES / 2 };

/* Judges the path that a call was given: enum verdict. */
static __noinline __u32 judge_argument(struct task_struct *task, __s32 dirfd, __u64 address)
{
	__u32 verdict = VERDICT_NONE;
	struct scratch *scratch = scratch_get();
	if (!scratch)
		return verdict;
	struct judge *j = judge_get();
	if (!j) {
		scratch_put(scratch);
		return verdict;
	}
	struct judge_context context = { .scratch = scratch, .judge = j };
	/* A null one stands for the descriptor in the calls that take it. */
	long n = 0;
	if (address)
		n = bpf_probe_read_user_str(scratch->data + ARGUMENT_AT, MAX_PATH, (void *)address);
	/* An empty one has no length before 6.13. */
	bool known = n >= 0 && (address || dirfd != AT_FDCWD);
	__u64 mnt = 0, dentry = 0;
	bool below = known; /* a directory */
	struct name root;
	if (known && other_root(task, &root)) {
		walk_path(scratch, (__u64)root.mnt, (__u64)root.dentry, 0, true);
		known = !scratch->walk.partial;
		j->kind = RULE_PATH;
		judge_names(&context, 0, scratch->walk.at);
		j->root_depth = j->depth;
		j->root_hash = j->stack[j->root_depth & (MAX_COMPONENTS - 1)];
	}
	if (n > 0 && scratch->data[ARGUMENT_AT] == '/') {
		/* It begins at the root, which has been taken in. */
		below = false;
		j->floor = j->root_depth;
	} else if (known && dirfd == AT_FDCWD) {
		struct fs_struct *fs = READ_LINK(task_struct, task, fs);
		if (fs) {
			mnt = (__u64)READ_TYPED(fs, pwd.mnt);
			dentry = (__u64)READ_TYPED(fs, pwd.dentry);
		}
	} else if (known) {
		struct file *file = file_of_fd(task, dirfd);
		if (file && has_path(READ(file, f_inode))) {
			mnt = (__u64)READ(file, f_path.mnt);
			dentry = (__u64)READ(file, f_path.dentry);
		}
	}
	if (below) {
		known = known && dentry;
		if (known) {
			walk_path(scratch, mnt, dentry, 0, true);
			known = !scratch->walk.partial;
			j->kind = RULE_PATH;
			j->depth = 0;
			judge_names(&context, 0, scratch->walk.at);
			/* A directory outside of the root is left by `..` as any other. */
			if (j->depth >= j->root_depth &&
			    j->stack[j->root_depth & (MAX_COMPONENTS - 1)] == j->root_hash)
				j->floor = j->root_depth;
		}
	}
	if (known) {
		j->at = ARGUMENT_AT;
		LOOP(n > 0 ? n - 1 : 0, argument_step, &context);
		end_component(j);
		look_up(&context, RULE_PATH);
	}
	verdict = verdict_of(j->signs);
	judge_put(j);
	scratch_put(scratch);
	return verdict;
}
#else
static __always_inline __u32 judge_argument(struct task_struct *task, __s32 dirfd, __u64 address)
{
	return VERDICT_NONE;
}
#endif

enum { STATX_MODE_AT = 28 };

/* Type of the file that stat(2) or statx(2) described, as a bit; 0: not known. */
static __always_inline __u32 stat_type(const volatile struct call_desc *desc, struct pt_regs *regs,
				       bool compat)
{
#if defined(__TARGET_ARCH_x86)
	enum { STAT_MODE_AT = 24 };
#else
	enum { STAT_MODE_AT = 16 };
#endif
	/* struct stat64 of 32-bit programs. */
	enum { STAT64_INO_AT = 88, STAT64_MODE_AT = 16 };
	__u16 mode = 0;
	__u64 address;
	if (config.detail == DETAIL_RAW)
		return 0;
	if (desc->stat != NO_ARG)
		address = argument(regs, desc->stat, compat) +
			  (desc->stat_ino == STAT64_INO_AT ? STAT64_MODE_AT : STAT_MODE_AT);
	else if (desc->statx != NO_ARG)
		address = argument(regs, desc->statx, compat) + STATX_MODE_AT;
	else
		return 0;
	if (bpf_probe_read_user(&mode, sizeof(mode), (void *)address))
		return 0;
	return 1 << (mode >> 12);
}

/* Judges a call that was given a path. */
static __noinline bool named_file_passes(struct task_struct *task, struct task_state *state,
					 struct pt_regs *regs, __s64 ret, __u64 now)
{
	bool compat = COMPAT_CALLS && state->call_flags & STASH_COMPAT;
	const volatile struct call_desc *desc = desc_of(state->number, compat);
	struct vfsmount *mnt = NULL;
	struct dentry *dentry = NULL;
	struct inode *inode = NULL;
	if (desc->flags & DESC_RET_FD && ret >= 0) {
		struct file *file = file_of_fd(task, ret);
		if (file) {
			mnt = READ(file, f_path.mnt);
			dentry = READ(file, f_path.dentry);
			inode = READ(file, f_inode);
		}
	} else if (desc->flags & DESC_CHDIR && ret == 0) {
		struct fs_struct *fs = READ_LINK(task_struct, task, fs);
		if (fs) {
			mnt = READ_TYPED(fs, pwd.mnt);
			dentry = READ_TYPED(fs, pwd.dentry);
			if (desc->chroots) {
				mnt = READ_TYPED(fs, root.mnt);
				dentry = READ_TYPED(fs, root.dentry);
			}
			inode = READ_TYPED(dentry, d_inode);
		}
	}
	if (inode) {
		if (filter.file_types && !(filter.path_types & type_bit(inode)))
			return false;
		if (!filters(1 << RULE_PATH))
			return true;
		struct cached_file *cached = cached_name(state, mnt, dentry, inode, now, false);
		return cached->verdict != VERDICT_LEFT;
	}
	if (filter.file_types) {
		__u32 type = ret == 0 ? stat_type(desc, regs, compat) : 0;
		if (type ? !(filter.path_types & type) : filter.known_types)
			return false;
	}
	if (!filters(1 << RULE_PATH))
		return true;
	if (!desc->path1 && !desc->path2)
		return passes(RULE_PATH, 0);
	if (desc->path1) {
		__s32 dirfd =
			desc->dirfd1 != NO_ARG ? argument(regs, desc->dirfd1, compat) : AT_FDCWD;
		if (judge_argument(task, dirfd, argument(regs, desc->string1, compat)) !=
		    VERDICT_LEFT)
			return true;
	}
	if (desc->path2) {
		__s32 dirfd =
			desc->dirfd2 != NO_ARG ? argument(regs, desc->dirfd2, compat) : AT_FDCWD;
		if (judge_argument(task, dirfd, argument(regs, desc->string2, compat)) !=
		    VERDICT_LEFT)
			return true;
	}
	return false;
}

/* Whether a call passes what can only be judged at its return. Of a call that
 * has not returned neither result nor path is known. */
static __always_inline bool call_passes(struct task_struct *task, struct task_state *state,
					struct pt_regs *regs, __s64 ret, __u64 now, bool pending)
{
	if (filter.min_dur_ns && now - state->enter_ns < filter.min_dur_ns)
		return false;
	if (pending && filter.errors_only)
		return false;
	if ((filters(1 << RULE_PATH) || filter.file_types) &&
	    desc_of(state->number, state->call_flags & STASH_COMPAT)->fd == NO_ARG) {
		if (pending)
			return !nothing_passes();
		return named_file_passes(task, state, regs, ret, now);
	}
	return true;
}

#endif
