/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a descriptor to a file handle: identity and path of files, each sent to
 * user space once, and again when its path has changed.
 */
#ifndef FATHOM_FILES_H
#define FATHOM_FILES_H

#include "path_filter.h"

/* Casts a number to a readable kernel object, without a call: kernels from
 * 6.2. Loads through it cannot fault. */
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;

#define KERNEL_OBJECT(type, address)                                                               \
	((struct type *)bpf_rdonly_cast((void *)(address), bpf_core_type_id_kernel(struct type)))

/* The file behind descriptor `fd` of `task`, null when there is none. */
static __always_inline struct file *file_of_fd(struct task_struct *task, __s32 fd)
{
	struct files_struct *files = task->files;
	if (!files)
		return NULL;
	struct fdtable *fdt = files->fdt;
	if (!fdt || (__u32)fd >= fdt->max_fds)
		return NULL;
	__u64 slot = (__u64)fdt->fd + 8 * (__u64)(__u32)fd;
	return KERNEL_OBJECT(file, KERNEL_OBJECT(hlist_head, slot)->first);
}

/* Whether somebody else may move the position of `file`: another thread that
 * shares the table of descriptors, or another descriptor. */
static __always_inline bool position_is_shared(struct task_struct *task, struct file *file)
{
	if (task->files->count.counter > 1)
		return true;
	if (bpf_core_field_exists(file->f_ref))
		/* file_ref_t counts from 0 for one reference. */
		return file->f_ref.refcnt.counter > 0;
	return BPF_CORE_READ((struct file___f_count *)file, f_count.counter) > 1;
}

struct walk_context {
	struct scratch *scratch;
};

/* One component: appended to the scratch, followed by '/', and hashed. */
static long walk_step(__u64 index, struct walk_context *context)
{
	struct scratch *scratch = context->scratch;
	struct walk *w = &scratch->walk;
	struct dentry *dentry = (struct dentry *)w->dentry;
	struct vfsmount *mnt = (struct vfsmount *)w->mnt;
	if (mnt && dentry == BPF_CORE_READ(mnt, mnt_root)) {
		struct mount *mount = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
		struct mount *parent = BPF_CORE_READ(mount, mnt_parent);
		if (parent == mount || !parent)
			return 1;
		w->dentry = (__u64)BPF_CORE_READ(mount, mnt_mountpoint);
		w->mnt = (__u64)parent + bpf_core_field_offset(struct mount, mnt);
		return 0;
	}
	struct qstr name = {};
	bpf_core_read(&name, sizeof(name), &dentry->d_name);
	__u32 len = name.hash_len >> 32;
	w->hash = (w->hash ^ name.hash_len) * 0x9e3779b97f4a7c15ULL;
	if (w->write) {
		__u32 at = w->at;
		if (len > MAX_NAME || at + len + 1 > w->end || at >= SCRATCH_BYTES - 512) {
			w->partial = 1;
			return 1;
		}
		len &= 255;
		if (bpf_probe_read_kernel(scratch->data + at, len, name.name)) {
			w->partial = 1;
			return 1;
		}
		at += len;
		scratch->data[at & (SCRATCH_BYTES - 1)] = '/';
		w->at = at + 1;
	}
	__u64 parent = (__u64)BPF_CORE_READ(dentry, d_parent);
	if (parent == w->dentry || !parent)
		/* A name outside any tree: pipe, socket, memfd. */
		return 1;
	w->dentry = parent;
	return 0;
}

/* A path of MAX_PATH bytes has at most half as many components. */
enum { MAX_DEPTH = MAX_PATH / 2 };

/* Walks from a name to the root. `write`: the components go to the scratch
 * from `at` on. */
static __always_inline void walk_path(struct scratch *scratch, __u64 mnt, __u64 dentry, __u32 at,
				      bool write)
{
	struct walk_context context = { .scratch = scratch };
	struct walk *w = &scratch->walk;
	w->dentry = dentry;
	w->mnt = mnt;
	w->hash = 0;
	w->at = at;
	w->end = at + MAX_PATH;
	w->write = write;
	w->partial = 0;
	if (bpf_loop(MAX_DEPTH, walk_step, &context, 0) >= MAX_DEPTH)
		w->partial = 1;
}

static __always_inline bool send_file(struct scratch *scratch, struct file_key *key, __u32 handle,
				      __u64 now)
{
	struct file_record *record = (void *)scratch->data;
	struct inode *inode = (struct inode *)key->inode;
	struct dentry *dentry = (struct dentry *)key->dentry;
	__u32 epoch = rename_epoch;
	walk_path(scratch, key->mnt, key->dentry, sizeof(*record), true);
	record->kind = RECORD_FILE;
	record->flags = scratch->walk.partial || epoch != rename_epoch ? FILE_PATH_PARTIAL : 0;
	if (!BPF_CORE_READ(dentry, d_hash.pprev) &&
	    key->dentry != (__u64)BPF_CORE_READ(dentry, d_parent))
		record->flags |= FILE_DELETED;
	__u32 end = scratch->walk.at;
	if (end < sizeof(*record) || end > SCRATCH_BYTES)
		return false;
	record->path_len = end - sizeof(*record);
	record->handle = handle;
	record->ts_ns = now;
	record->ino = key->ino;
	record->size = BPF_CORE_READ(inode, i_size);
	record->dev = key->dev;
	record->generation = key->generation;
	record->mode = BPF_CORE_READ(inode, i_mode);
	record->fs_magic = BPF_CORE_READ(inode, i_sb, s_magic);
	return wide_output(scratch->data, end);
}

/* The handle of the name that `name` describes by its addresses, and the epoch
 * at which that holds; announces it when it is new or its path has changed. 0 when there is no room for another
 * file. A global function: the verifier checks it once, not at each call. */
__noinline __u32 file_handle(struct cached_file *name)
{
	if (!name)
		return 0;
	struct inode *inode = (struct inode *)name->inode;
	struct dentry *dentry = (struct dentry *)name->dentry;
	struct file_key key = {
		.inode = name->inode,
		.dentry = name->dentry,
		.mnt = name->mnt,
		.ino = name->ino,
		.name_hash = BPF_CORE_READ(dentry, d_name.hash_len),
		.generation = name->generation,
		.dev = BPF_CORE_READ(inode, i_sb, s_dev),
	};
	__u32 epoch = rename_epoch;
	struct file_value *value = bpf_map_lookup_elem(&files, &key);
	name->epoch = 0;
	bool by_path = filters(1 << RULE_PATH);
	if (value && value->epoch == epoch) {
		if (by_path)
			name->verdict = value->verdict;
		if (value->sent) {
			name->epoch = epoch;
			return value->handle;
		}
		if (by_path && !name->wanted && value->verdict == VERDICT_LEFT) {
			name->epoch = epoch;
			return 0;
		}
	}
	struct scratch *scratch = scratch_get();
	if (!scratch)
		return value ? value->handle : 0;
	walk_path(scratch, key.mnt, key.dentry, 0, false);
	__u64 path_hash = scratch->walk.hash;
	if (!value) {
		struct file_value fresh = {
			.handle = __sync_fetch_and_add(&last_handle, 1) + 1,
		};
		bpf_map_update_elem(&files, &key, &fresh, BPF_NOEXIST);
		value = bpf_map_lookup_elem(&files, &key);
	}
	__u32 handle = 0;
	if (value) {
		handle = value->handle;
		bool wanted = true;
		if (by_path) {
			if (value->path_hash != path_hash || !value->verdict) {
				walk_path(scratch, key.mnt, key.dentry, 0, true);
				value->verdict = judge_name(scratch, inode);
			}
			name->verdict = value->verdict;
			wanted = name->wanted || value->verdict != VERDICT_LEFT;
		}
		if (value->path_hash != path_hash)
			value->sent = 0;
		if (!value->sent && wanted)
			value->sent = send_file(scratch, &key, handle, name->seen_ns);
		value->path_hash = path_hash;
		value->epoch = epoch;
		if (!wanted) {
			name->epoch = epoch;
			handle = 0;
		} else if (value->sent) {
			name->epoch = epoch;
		} else {
			COUNT(file_retry);
		}
	}
	scratch_put(scratch);
	return handle;
}

/* A name as the task's cache has it, brought up to date. `now` is the time of a
 * record that may have to be sent, 0 for the present: a file that is found at
 * the return of a call must not be younger than the call. `wanted`: it has to
 * be announced, even if the filter of paths leaves it out. */
static __always_inline struct cached_file *cached_name(struct task_state *state,
						       struct vfsmount *mnt, struct dentry *dentry,
						       struct inode *inode, __u64 now, bool wanted)
{
	/* Inodes lie some hundred bytes apart; neighbours should not collide. */
	__u64 address = (__u64)inode;
	__u64 slot = ((address >> 6) ^ (address >> 10) ^ (address >> 13)) & (CACHED_FILES - 1);
	struct cached_file *cached = &state->files[slot];
	if (likely(cached->inode == (__u64)inode && cached->dentry == (__u64)dentry &&
		   cached->mnt == (__u64)mnt && cached->ino == inode->i_ino &&
		   cached->generation == inode->i_generation && cached->epoch == rename_epoch) &&
	    (!filters(1 << RULE_PATH) || !wanted || cached->handle))
		return cached;
	cached->inode = (__u64)inode;
	cached->dentry = (__u64)dentry;
	cached->mnt = (__u64)mnt;
	cached->ino = inode->i_ino;
	cached->seen_ns = now ? now : bpf_ktime_get_ns();
	cached->generation = inode->i_generation;
	cached->wanted = wanted;
	cached->handle = file_handle(cached);
	return cached;
}

/* The handle of a name that a recorded call uses; `now` as above. */
static __always_inline __u32 handle_of_name(struct task_state *state, struct vfsmount *mnt,
					    struct dentry *dentry, struct inode *inode, __u64 now)
{
	return cached_name(state, mnt, dentry, inode, now, true)->handle;
}

/* The handle of an open file; `now` as for handle_of_name(). */
static __always_inline __u32 handle_of(struct task_state *state, struct file *file, __u64 now)
{
	return handle_of_name(state, file->f_path.mnt, file->f_path.dentry, file->f_inode, now);
}

/* The handle of the working directory; `now` as for handle_of_name(). */
static __always_inline __u32 handle_of_cwd(struct task_state *state, struct task_struct *task,
					   __u64 now)
{
	struct fs_struct *fs = task->fs;
	if (!fs)
		return 0;
	struct dentry *dentry = fs->pwd.dentry;
	return handle_of_name(state, fs->pwd.mnt, dentry, dentry->d_inode, now);
}

/* Files and directories: not sockets, pipes and anonymous inodes (which have
 * no type at all). */
static __always_inline bool is_storage(__u32 mode)
{
	__u32 type = mode & S_IFMT;
	return type && type != S_IFSOCK && type != S_IFIFO;
}

static __always_inline bool is_seekable(__u32 mode)
{
	__u32 type = mode & S_IFMT;
	return type == S_IFREG || type == S_IFBLK;
}

#endif
