/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Filters: which tasks, files and calls are recorded. What is not asked for is
 * dropped by the verifier, as the configuration is constant.
 *
 * Values are told by hashes, so that hundreds of them cost as much as one. A
 * call passes when it passes every kind of filter; of one kind it passes when
 * some rule takes it, or no rule of that kind takes anything, and no rule
 * leaves it out.
 */
#ifndef FATHOM_FILTER_H
#define FATHOM_FILTER_H

#include "maps.h"

const volatile struct filter_config filter SEC(".rodata.filter");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set before loading */
	__type(key, struct rule_key);
	__type(value, __u32); /* enum rule_sign */
} rules SEC(".maps");

/* Kinds that depend on the task alone. They are judged when something of it
 * changes, not at its calls. */
#define TASK_RULES (1 << RULE_COMM | 1 << RULE_PID | 1 << RULE_TID | 1 << RULE_UID | CGROUP_RULES)

/* Of these the ones that are about the cgroup. */
#define CGROUP_RULES (1 << RULE_CGROUP | 1 << RULE_CONTAINER | 1 << RULE_UNIT | 1 << RULE_POD)

/* Kinds that need loops: paths are hashed byte by byte. The loader refuses them
 * where there are none. */
#if HAVE_LOOPS
enum { KINDS_WITHOUT = 0 };
#else
enum { KINDS_WITHOUT = 1 << RULE_PATH | CGROUP_RULES };
#endif

static __always_inline bool filters(__u32 kinds)
{
	return filter.given & kinds & ~KINDS_WITHOUT;
}

/* What the rules say of a value. */
static __always_inline __u32 signs_of(__u32 kind, __u32 form, __u64 hash)
{
	struct rule_key key = { .kind = kind, .form = form, .hash = hash };
	__u32 *signs = bpf_map_lookup_elem(&rules, &key);
	return signs ? *signs : 0;
}

/* Whether a value with these signs passes; without a value there are none. */
static __always_inline bool passes(__u32 kind, __u32 signs)
{
	if (signs & RULE_LEAVES)
		return false;
	return signs & RULE_TAKES || !(filter.takes & (1 << kind));
}

/* Whether an inode is an anonymous one: they have no type, or, in newer kernels, that
 * of a regular file; so have descriptors of processes there. */
static __always_inline bool is_anonymous(struct inode *inode, __u32 mode)
{
	__u32 type = mode & S_IFMT;
#if HAVE_CASTS
	if (type == S_IFREG) {
		struct super_block *sb = READ(inode, i_sb);
		unsigned long magic = READ(sb, s_magic);
		return magic == ANON_INODE_FS || magic == PID_FS;
	}
#endif
	return !type;
}

/* The type of a file as a bit. */
static __always_inline __u32 type_bit(struct inode *inode)
{
	__u32 mode = READ(inode, i_mode);
	__u32 type = is_anonymous(inode, mode) ? 0 : (mode & S_IFMT) >> 12;
	return 1 << (type & 15);
}

/* Judges a task anew after something of it has changed (task_filter.bpf.h). */
static __noinline int reconsider(struct task_struct *task);

#endif
