/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a descriptor to a file handle: identity and path of files, each sent to
 * user space once, and again when its path has changed.
 *
 * A file is device, inode and generation, so a recycled inode number is another
 * file. A handle is an inode under a name and a mount, so a hard link keeps the
 * path by which a call reached it. Every rename, link and mount on the machine
 * raises an epoch. A name that was checked in an older epoch is checked again by
 * a hash over its components, and sent again if the hash differs. The record of
 * a file is never younger than the call that found it, so it sorts first.
 *
 * A path is walked to the root of its mount namespace. For a file in another
 * namespace than the recorder's, the path within the file system is sent too;
 * the enricher joins it with the recorder's own mounts. A call with a path
 * carries the root of its task where that differs.
 */
#ifndef FATHOM_FILES_H
#define FATHOM_FILES_H

#include "path_filter.h"

/* The file behind descriptor `fd` of `task`, null when there is none. */
static __always_inline struct file *file_of_fd(struct task_struct *task, __s32 fd)
{
	struct files_struct *files = READ_LINK(task_struct, task, files);
	if (!files)
		return NULL;
	struct fdtable *fdt = READ_TYPED(files, fdt);
	if (!fdt || (__u32)fd >= READ_TYPED(fdt, max_fds))
		return NULL;
	return READ_POINTER(file, (__u64)READ_TYPED(fdt, fd) + 8 * (__u64)(__u32)fd);
}

/* Whether other threads use the task's table of descriptors. */
static __always_inline bool descriptors_are_shared(struct task_struct *task)
{
	struct files_struct *files = READ_LINK(task_struct, task, files);
	return files && READ_TYPED(files, count.counter) > 1;
}

/* Whether somebody else may move the position of `file`: another thread that
 * shares the table of descriptors, or another descriptor. */
static __always_inline bool position_is_shared(struct task_struct *task, struct file *file)
{
	if (descriptors_are_shared(task))
		return true;
	if (bpf_core_field_exists(file->f_ref))
		/* file_ref_t counts from 0 for one reference. */
		return READ(file, f_ref.refcnt.counter) > 0;
	return BPF_CORE_READ((struct file___f_count *)file, f_count.counter) > 1;
}

/* Whether a write to `file` goes to its end. `flags`: RWF_ flags of the write. */
static __always_inline bool write_appends(struct file *file, __u32 flags)
{
	if (flags & RWF_APPEND)
		return true;
	return READ(file, f_flags) & O_APPEND && !(flags & RWF_NOAPPEND);
}

/* One component: appended to the scratch, followed by '/', and hashed. */
SCRATCH_STEP(walk_step)
{
	struct walk *w = &scratch->walk;
	struct dentry *dentry = (struct dentry *)w->dentry;
	struct vfsmount *mnt = (struct vfsmount *)w->mnt;
	if (mnt && dentry == BPF_CORE_READ(mnt, mnt_root)) {
		struct mount *mount = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
		struct mount *parent = BPF_CORE_READ(mount, mnt_parent);
		if (parent == mount || !parent) {
			struct mnt_namespace *ns = BPF_CORE_READ(mount, mnt_ns);
			/* A mount of the kernel's own has an error for one. */
			if (!ns)
				w->partial = 1;
			else if ((__u64)ns < -(__u64)MAX_ERRNO)
				w->mnt_ns = BPF_CORE_READ(ns, ns.inum);
			return 1;
		}
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

/* Walks to the root from the name that the scratch's walk has. */
VERIFIED_ONCE_DEEP int walk_from_here(struct scratch *scratch, __u32 at, bool write)
{
	if (!scratch)
		return 0;
	struct walk *w = &scratch->walk;
	w->hash = 1; /* that of a root; 0 stands for none */
	w->at = at;
	w->end = at + MAX_PATH;
	w->write = write;
	w->partial = 0;
	w->mnt_ns = 0;
	if (SCRATCH_LOOP(MAX_DEPTH, walk_step, scratch) >= MAX_DEPTH)
		w->partial = 1;
	return 0;
}

/* Walks from a name to the root. `write`: the components go to the scratch
 * from `at` on. */
static __always_inline void walk_path(struct scratch *scratch, __u64 mnt, __u64 dentry, __u32 at,
				      bool write)
{
	scratch->walk.dentry = dentry;
	scratch->walk.mnt = mnt;
	walk_from_here(scratch, at, write);
}

/* A namespace has no name in a directory: puts its kind ("mnt", "net") in the place
 * of one, at `at`. */
static __always_inline void name_namespace(struct scratch *scratch, struct inode *inode, __u32 at)
{
	enum { KIND_BYTES = 32 };
	struct ns_common *ns = BPF_CORE_READ(inode, i_private);
	const char *kind = BPF_CORE_READ(ns, ops, name);
	long n = bpf_probe_read_kernel_str(scratch->data + at, KIND_BYTES, kind);
	if (n < 1 || n > KIND_BYTES)
		return;
	scratch->data[(at + n - 1) & (SCRATCH_BYTES - 1)] = '/';
	scratch->walk.at = at + n;
}

/* Announces a file. `path_hash` is what a walk a moment ago found; names that two
 * walks after each other find the same were not torn by a rename between them. The
 * walk's `whole_hash` is then that of the names that were sent, and 0 when they
 * changed with every walk: such a path is partial, and has to be sent again. */
static __always_inline bool send_file(struct scratch *scratch, struct file_key *key, __u32 handle,
				      __u64 now, __u64 path_hash)
{
	struct file_record *record = (void *)scratch->data;
	struct inode *inode = (struct inode *)key->inode;
	__u64 whole_hash = path_hash;
	walk_path(scratch, key->mnt, key->dentry, sizeof(*record), true);
	/* One that ends early has the hash of what it saw. */
	if (!scratch->walk.partial && scratch->walk.hash != path_hash) {
		__u64 before = scratch->walk.hash;
		walk_path(scratch, key->mnt, key->dentry, sizeof(*record), true);
		whole_hash = scratch->walk.hash == before ? before : 0;
	}
	scratch->walk.whole_hash = whole_hash;
	if (BPF_CORE_READ(inode, i_sb, s_magic) == NS_FS)
		name_namespace(scratch, inode, sizeof(*record));
	record->kind = RECORD_FILE;
	record->flags = scratch->walk.partial || !whole_hash ? FILE_PATH_PARTIAL : 0;
	record->mnt_ns = scratch->walk.mnt_ns;
	record->fs_path_len = 0;
	__builtin_memset(record->reserved, 0, sizeof(record->reserved));
	if (scratch->walk.removed)
		record->flags |= FILE_DELETED;
	__u32 end = scratch->walk.at;
	if (end < sizeof(*record) || end > SCRATCH_BYTES)
		return false;
	record->path_len = end - sizeof(*record);
	if (record->mnt_ns && record->mnt_ns != config.mnt_ns) {
		walk_path(scratch, 0, key->dentry, end, true);
		if (!scratch->walk.partial && scratch->walk.at > end) {
			record->fs_path_len = scratch->walk.at - end;
			end = scratch->walk.at;
		}
		if (end > SCRATCH_BYTES)
			return false;
	}
	record->handle = handle;
	record->ts_ns = now;
	record->ino = key->ino;
	record->size = BPF_CORE_READ(inode, i_size);
	record->dev = key->dev;
	record->generation = key->generation;
	record->mode = BPF_CORE_READ(inode, i_mode);
	record->fs_magic = BPF_CORE_READ(inode, i_sb, s_magic);
	record->fs_dev = BPF_CORE_READ(inode, i_sb, s_dev);
	return wide_output(scratch->data, end);
}

/* The device of a file as stat reports it. */
static __always_inline __u32 device_of(struct inode *inode)
{
	if (bpf_core_type_exists(struct btrfs_inode) &&
	    BPF_CORE_READ(inode, i_sb, s_magic) == BTRFS_SUPER_MAGIC) {
		struct btrfs_inode *own =
			(void *)inode - bpf_core_field_offset(struct btrfs_inode, vfs_inode);
		return BPF_CORE_READ(own, root, anon_dev);
	}
	return BPF_CORE_READ(inode, i_sb, s_dev);
}

/* Whether a name has been removed, as d_unlinked() of the kernel has it: it is in no
 * directory any more, and no root. */
static __always_inline bool is_removed(struct dentry *dentry)
{
	return !READ(dentry, d_hash.pprev) && dentry != READ(dentry, d_parent);
}

/* What file_handle() gives: the handle in the lower half, and in the upper one
 * whether it holds as long as nothing on the machine is renamed, and what the
 * filter of paths says of the name. */
#define NAME_HOLDS (1ULL << 32)
enum { NAME_VERDICT_SHIFT = 33 };

static __always_inline __u64 name_verdict(struct file_value *value)
{
	return filters(1 << RULE_PATH) ? (__u64)(value->verdict & 3) << NAME_VERDICT_SHIFT : 0;
}

/* The handle of the name of `inode` that `dentry` and `mnt` stand for, with what
 * is said above; announces it when it is new or its path has changed, unless the
 * filter of paths leaves it out and it is not `wanted` all the same: then the
 * handle is 0, as it is when there is no room for another file. A global function
 * that takes numbers only: every verifier checks it once, not at each call. */
__noinline __u64 file_handle(__u64 inode_address, __u64 dentry_address, __u64 mnt, __u64 now,
			     bool wanted)
{
	struct inode *inode = (struct inode *)inode_address;
	struct dentry *dentry = (struct dentry *)dentry_address;
	struct scratch *scratch = scratch_get();
	if (!scratch)
		return 0;
	/* Not on the stack: the frames of all callers share 512 bytes. */
	struct file_key *key = &scratch->key;
	key->inode = inode_address;
	key->dentry = dentry_address;
	key->mnt = mnt;
	key->ino = BPF_CORE_READ(inode, i_ino);
	key->name_hash = BPF_CORE_READ(dentry, d_name.hash_len);
	key->generation = BPF_CORE_READ(inode, i_generation);
	key->dev = device_of(inode);
	__u32 epoch = rename_epoch;
	/* Not on the stack either. */
	scratch->walk.removed = !BPF_CORE_READ(dentry, d_hash.pprev) &&
				dentry_address != (__u64)BPF_CORE_READ(dentry, d_parent);
	__u64 handle = 0;
	struct file_value *value = bpf_map_lookup_elem(&files, key);
	bool by_path = filters(1 << RULE_PATH);
	if (value && value->epoch == epoch && value->removed == scratch->walk.removed) {
		if (value->sent) {
			handle = value->handle | NAME_HOLDS | name_verdict(value);
			goto found;
		}
		if (by_path && !wanted && value->verdict == VERDICT_LEFT) {
			handle = NAME_HOLDS | name_verdict(value);
			goto found;
		}
	}
	walk_path(scratch, mnt, dentry_address, 0, false);
	__u64 path_hash = scratch->walk.hash;
	if (!value) {
		struct file_value *fresh = (void *)scratch->data;
		__builtin_memset(fresh, 0, sizeof(*fresh));
		fresh->handle = next_handle(scratch);
		bpf_map_update_elem(&files, key, fresh, BPF_NOEXIST);
		value = bpf_map_lookup_elem(&files, key);
	}
	if (value) {
		handle = value->handle;
		__u64 judged = path_hash;
		if (by_path && (value->path_hash != path_hash || !value->verdict)) {
			walk_path(scratch, mnt, dentry_address, 0, true);
			value->verdict = judge_name(scratch, inode);
			judged = scratch->walk.partial ? path_hash : scratch->walk.hash;
		}
		if (value->path_hash != path_hash || value->removed != scratch->walk.removed)
			value->sent = 0;
		value->removed = scratch->walk.removed;
		bool announces = wanted || !by_path || value->verdict != VERDICT_LEFT;
		if (!value->sent && announces) {
			value->sent = send_file(scratch, key, handle, now, path_hash);
			path_hash = scratch->walk.whole_hash;
		}
		/* Names that a rename changed meanwhile are looked at again. */
		bool whole = path_hash && judged == path_hash;
		value->path_hash = whole ? path_hash : 0;
		value->epoch = whole ? epoch : 0;
		if (!announces)
			handle = 0;
		else if (!value->sent)
			COUNT(file_retry);
		if (whole && (!announces || value->sent))
			handle |= NAME_HOLDS;
		handle |= name_verdict(value);
	}
found:
	scratch_put(scratch);
	return handle;
}

#if HAVE_LAYERS
/* Handles of the files that recorded tasks use, for the layers that know the inode
 * only. */
struct known_inode {
	__u64 ino;
	__u32 generation;
	__u32 handle;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536); /* 1 without these layers */
	__type(key, __u64);
	__type(value, struct known_inode);
} known_inodes SEC(".maps");

__noinline int note_known(__u64 inode, __u64 ino, __u32 generation, __u32 handle)
{
	struct known_inode known = { .ino = ino, .generation = generation, .handle = handle };
	bpf_map_update_elem(&known_inodes, &inode, &known, BPF_ANY);
	return 0;
}

/* The handle of the file whose inode lies at `address`, 0 when no recorded task has
 * used it. */
static __always_inline __u32 handle_of_inode(__u64 address)
{
	struct known_inode *known = bpf_map_lookup_elem(&known_inodes, &address);
	struct inode *inode = KERNEL_OBJECT(inode, address);
	if (!known || known->ino != READ(inode, i_ino) ||
	    known->generation != READ(inode, i_generation))
		return 0;
	return known->handle;
}
#endif

/* Where the task's cache has a file with this inode, if it has it. */
static __always_inline struct cached_file *cache_slot(struct task_state *state, struct inode *inode)
{
	/* Inodes lie some hundred bytes apart; neighbors should not collide. */
	__u64 address = (__u64)inode;
	__u64 slot = ((address >> 6) ^ (address >> 10) ^ (address >> 13)) & (CACHED_FILES - 1);
	return &state->files[slot];
}

/* Whether that is this name, as it still is. */
static __always_inline bool is_cached(struct cached_file *cached, struct vfsmount *mnt,
				      struct dentry *dentry, struct inode *inode)
{
	return likely(cached->inode == (__u64)inode && cached->dentry == (__u64)dentry &&
		      cached->mnt == (__u64)mnt && cached->ino == READ(inode, i_ino) &&
		      cached->generation == READ(inode, i_generation) &&
		      cached->epoch == rename_epoch && cached->removed == is_removed(dentry));
}

/* A name as the task's cache has it, brought up to date. `now` is the time of a
 * record that may have to be sent, 0 for the present: a file that is found at
 * the return of a call must not be younger than the call. `wanted`: it has to
 * be announced, even if the filter of paths leaves it out. */
static __always_inline struct cached_file *cached_name(struct task_state *state,
						       struct vfsmount *mnt, struct dentry *dentry,
						       struct inode *inode, __u64 now, bool wanted)
{
	struct cached_file *cached = cache_slot(state, inode);
	if (is_cached(cached, mnt, dentry, inode) &&
	    (!filters(1 << RULE_PATH) || !wanted || cached->handle))
		return cached;
	__u32 epoch = rename_epoch;
	cached->inode = (__u64)inode;
	cached->dentry = (__u64)dentry;
	cached->mnt = (__u64)mnt;
	cached->ino = READ(inode, i_ino);
	cached->generation = READ(inode, i_generation);
	cached->removed = is_removed(dentry);
	cached->mode = READ(inode, i_mode);
	cached->type_passes = 0;
	/* Numbers again, not pointers: read back from memory. */
	volatile struct cached_file *numbers = cached;
	__u64 found = file_handle(numbers->inode, numbers->dentry, numbers->mnt,
				  now ? now : bpf_ktime_get_ns(), wanted);
	cached->handle = found;
#if HAVE_LAYERS
	if (layer_config.block && cached->handle)
		note_known(numbers->inode, numbers->ino, numbers->generation, found);
#endif
	cached->epoch = found & NAME_HOLDS ? epoch : 0;
	if (filters(1 << RULE_PATH))
		cached->verdict = found >> NAME_VERDICT_SHIFT;
	return cached;
}

/* The handle of a name that a recorded call uses; `now` as above. */
static __always_inline __u32 handle_of_name(struct task_state *state, struct vfsmount *mnt,
					    struct dentry *dentry, struct inode *inode, __u64 now)
{
	return cached_name(state, mnt, dentry, inode, now, true)->handle;
}

/* The name of an open file; `now` and `wanted` as above. */
static __always_inline struct cached_file *cached_file(struct task_state *state, struct file *file,
						       __u64 now, bool wanted)
{
	return cached_name(state, READ(file, f_path.mnt), READ(file, f_path.dentry),
			   READ(file, f_inode), now, wanted);
}

/* The handle of an open file; `now` as for handle_of_name(). */
static __always_inline __u32 handle_of(struct task_state *state, struct file *file, __u64 now)
{
	return handle_of_name(state, READ(file, f_path.mnt), READ(file, f_path.dentry),
			      READ(file, f_inode), now);
}

/* The handle of the working directory, or of the root directory; `now` as for
 * handle_of_name(). */
static __always_inline __u32 handle_of_directory(struct task_state *state, struct task_struct *task,
						 bool root, __u64 now)
{
	struct fs_struct *fs = READ_LINK(task_struct, task, fs);
	if (!fs)
		return 0;
	struct vfsmount *mnt = READ_TYPED(fs, pwd.mnt);
	struct dentry *dentry = READ_TYPED(fs, pwd.dentry);
	if (root) {
		mnt = READ_TYPED(fs, root.mnt);
		dentry = READ_TYPED(fs, root.dentry);
	}
	return handle_of_name(state, mnt, dentry, READ_TYPED(dentry, d_inode), now);
}

static __always_inline __u32 file_mode(struct file *file)
{
	struct inode *inode = READ(file, f_inode);
	return READ(inode, i_mode);
}

struct name {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

/* Finds the root directory of the task where it has another one than its mount
 * namespace. */
static __always_inline bool other_root(struct task_struct *task, struct name *root)
{
	struct fs_struct *fs = READ_LINK(task_struct, task, fs);
	struct nsproxy *proxy = READ_LINK(task_struct, task, nsproxy);
	if (!fs || !proxy)
		return false;
	struct mnt_namespace *ns = READ_TYPED(proxy, mnt_ns);
	if (!ns)
		return false;
	struct dentry *dentry = READ_TYPED(fs, root.dentry);
	struct vfsmount *mnt = READ_TYPED(fs, root.mnt);
	struct mount *top = READ_TYPED(ns, root);
	if (mnt && dentry == READ_TYPED(mnt, mnt_root)) {
		struct mount *mount = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
		/* What is mounted on the namespace's first mount (an initramfs)
		 * hides it. */
		if (mount == top || BPF_CORE_READ(mount, mnt_parent) == top)
			return false;
	}
	root->mnt = mnt;
	root->dentry = dentry;
	return true;
}

/* The handle of that directory, 0 when there is none; `now` as for
 * handle_of_name(). */
static __always_inline __u32 handle_of_root(struct task_state *state, struct task_struct *task,
					    __u64 now)
{
	struct name root;
	if (!other_root(task, &root))
		return 0;
	return handle_of_name(state, root.mnt, root.dentry, READ_TYPED(root.dentry, d_inode), now);
}

/* Files and directories: not sockets, pipes and anonymous inodes. */
static __always_inline bool is_storage(struct inode *inode, __u32 mode)
{
	__u32 type = mode & S_IFMT;
	return type != S_IFSOCK && type != S_IFIFO && !is_anonymous(inode, mode);
}

static __always_inline bool is_seekable(__u32 mode)
{
	__u32 type = mode & S_IFMT;
	return type == S_IFREG || type == S_IFBLK;
}

#endif
