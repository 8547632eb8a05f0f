/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Judges paths by their beginnings. A path is hashed component by component
 * from the root down; a rule is the hash of a path, so that a path has to be
 * looked up once for each of its components at most.
 *
 * The hash of a component is a polynomial, which comes out the same when its
 * bytes are taken from either end: the kernel's names are read from the leaf
 * up, arguments from the root down.
 */
#ifndef FATHOM_PATH_FILTER_H
#define FATHOM_PATH_FILTER_H

#include "filter.h"

static __always_inline bool has_path(struct inode *inode)
{
	__u64 magic = BPF_CORE_READ(inode, i_sb, s_magic);
	return magic != PIPE_FS && magic != SOCK_FS && magic != ANON_INODE_FS;
}

static __always_inline __u32 verdict_of(__u32 signs)
{
	return passes(RULE_PATH, signs) ? VERDICT_TAKEN : VERDICT_LEFT;
}

#if HAVE_LOOPS
/* A path of MAX_PATH bytes has at most half as many components. */
enum { MAX_COMPONENTS = 2048, JUDGES = 2 };

/* Room to judge a path: two a CPU, claimed by `busy`, as the scratches are. */
struct judge {
	__u32 busy;
	__u32 depth; /* components on the stack */
	__u32 floor; /* `..` leads no higher: the depth of the root */
	__u32 root_depth; /* of a root that is another one than the namespace's, and */
	__u64 root_hash; /* the path down to it: nothing more fits on the stack */
	__u64 hash; /* of the component so far */
	__u64 power; /* factor of its next byte, from the leaf up */
	__u32 len; /* its bytes */
	__u32 dots; /* of which dots */
	__u32 at; /* where the next byte is */
	__u32 kind; /* enum rule_kind that is looked up */
	__u32 signs; /* what was found */
	__u32 id_signs; /* what was found of an id that is being read */
	__u32 unit_signs; /* what was found of the names of cgroups */
	__u32 pod_signs;
	struct rule_key key; /* of a name: the frames of this chain of calls have no room */
	__u64 stack[MAX_COMPONENTS]; /* hash of the path down to each component */
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, JUDGES);
	__type(key, __u32);
	__type(value, struct judge);
} judges SEC(".maps");

struct judge_context {
	struct scratch *scratch;
	struct judge *judge;
};

static __always_inline struct judge *judge_get(void)
{
	for (__u32 i = 0; i < JUDGES; i++) {
		__u32 key = i;
		struct judge *j = bpf_map_lookup_elem(&judges, &key);
		if (j && claim(&j->busy)) {
			j->depth = 0;
			j->floor = 0;
			j->root_depth = 0;
			j->root_hash = filter.seed;
			j->hash = 0;
			j->power = 1;
			j->len = 0;
			j->dots = 0;
			j->signs = 0;
			j->unit_signs = 0;
			j->pod_signs = 0;
			j->stack[0] = filter.seed;
			return j;
		}
	}
	return NULL;
}

static __always_inline void judge_put(struct judge *j)
{
	release(&j->busy);
}

static __always_inline void forget_component(struct judge *j)
{
	j->hash = 0;
	j->power = 1;
	j->len = 0;
	j->dots = 0;
}

static __always_inline void push_component(struct judge *j)
{
	__u32 depth = j->depth;
	if (depth < MAX_COMPONENTS - 1) {
		__u64 above = j->stack[depth & (MAX_COMPONENTS - 1)];
		j->stack[(depth + 1) & (MAX_COMPONENTS - 1)] =
			((above << 23 | above >> 41) ^ j->hash) * filter.factor;
		j->depth = depth + 1;
	}
	forget_component(j);
}

/* A digit of a container's id, from its first one on. */
static long id_step(__u64 index, struct judge_context *context)
{
	struct judge *j = context->judge;
	__u32 at = j->at + index;
	__u8 c = context->scratch->data[at & (SCRATCH_BYTES - 1)];
	if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
		j->id_signs = 0;
		return 1;
	}
	j->hash = j->hash * filter.factor + c;
	if (filter.container_lengths >> (index & 63) & 1)
		j->id_signs |= signs_of(RULE_CONTAINER, RULE_BEGINNING, j->hash);
	return 0;
}

enum { ID_DIGITS = 64 };

/* Looks for a container's id in the component of `len` bytes at `at`: engines
 * put it at the end of a cgroup's name, behind "-" or ":" or alone, and systemd
 * appends ".scope". A monitor (conmon) is not in the container. */
static __always_inline void judge_container(struct judge_context *context, __u32 at, __u32 len)
{
	__u8 *data = context->scratch->data;
	struct judge *j = context->judge;
	__u32 tail = at + len;
	if (len > ID_DIGITS + 5 && data[(tail - 1) & (SCRATCH_BYTES - 1)] == 'e' &&
	    data[(tail - 6) & (SCRATCH_BYTES - 1)] == '.') {
		len -= 6;
		tail -= 6;
	}
	if (len < ID_DIGITS)
		return;
	__u32 id = tail - ID_DIGITS;
	if (len > ID_DIGITS) {
		__u8 before = data[(id - 1) & (SCRATCH_BYTES - 1)];
		if (before != '-' && before != ':')
			return;
	}
	if (len > ID_DIGITS + 3 && data[(id - 2) & (SCRATCH_BYTES - 1)] == 'n' &&
	    data[(id - 3) & (SCRATCH_BYTES - 1)] == 'o' &&
	    data[(id - 4) & (SCRATCH_BYTES - 1)] == 'm')
		return;
	__u64 hash = j->hash;
	j->hash = filter.seed;
	j->id_signs = 0;
	j->at = id;
	LOOP(ID_DIGITS, id_step, context);
	j->signs |= j->id_signs;
	j->hash = hash;
	j->at = at;
}

/* What the rules of a kind say of the name that has been read. */
static __always_inline __u32 name_signs(struct judge *j, __u32 kind)
{
	j->key = (struct rule_key){ .kind = kind, .form = RULE_WHOLE, .hash = j->hash };
	__u32 *signs = bpf_map_lookup_elem(&rules, &j->key);
	return signs ? *signs : 0;
}

/* Looks up the name of a cgroup, which lies in the scratch at `at`. */
static __always_inline void judge_cgroup_name(struct judge_context *context, __u32 at)
{
	struct judge *j = context->judge;
	if (j->kind != RULE_CGROUP)
		return;
	if (filters(1 << RULE_CONTAINER))
		judge_container(context, at, j->len);
	if (filters(1 << RULE_UNIT))
		j->unit_signs |= name_signs(j, RULE_UNIT);
	if (filters(1 << RULE_POD))
		j->pod_signs |= name_signs(j, RULE_POD);
}

/* A byte of a path whose components come from the leaf up, each followed by
 * '/', taken from its end. */
static long name_step(__u64 index, struct judge_context *context)
{
	struct judge *j = context->judge;
	__u32 at = j->at - 1;
	j->at = at;
	__u8 c = context->scratch->data[at & (SCRATCH_BYTES - 1)];
	if (c != '/') {
		j->hash += c * j->power;
		j->power *= filter.factor;
		j->len++;
	} else if (j->len) {
		judge_cgroup_name(context, at + 1);
		j->at = at;
		push_component(j);
	}
	return 0;
}

/* Takes in the path that lies in the scratch from `from` to `to`. */
static __always_inline void judge_names(struct judge_context *context, __u32 from, __u32 to)
{
	struct judge *j = context->judge;
	j->at = to;
	if (to <= from || to > SCRATCH_BYTES)
		return;
	LOOP(to - from, name_step, context);
	if (j->len) {
		judge_cgroup_name(context, from);
		push_component(j);
	}
}

static __always_inline void end_component(struct judge *j)
{
	if (j->len <= 2 && j->dots == j->len) {
		if (j->len == 2 && j->depth > j->floor)
			j->depth--;
		forget_component(j);
	} else {
		push_component(j);
	}
}

/* A byte of an argument. `.`, `..` and doubled slashes go by the text alone. */
static long argument_step(__u64 index, struct judge_context *context)
{
	struct judge *j = context->judge;
	__u32 at = j->at;
	j->at = at + 1;
	__u8 c = context->scratch->data[at & (SCRATCH_BYTES - 1)];
	if (c != '/') {
		j->hash = j->hash * filter.factor + c;
		j->len++;
		j->dots += c == '.';
	} else {
		end_component(j);
	}
	return 0;
}

/* Looks up the path down to component `index`. */
static long look_up_step(__u64 index, struct judge_context *context)
{
	struct judge *j = context->judge;
	if (index > j->depth)
		return 1;
	__u64 hash = j->stack[index & (MAX_COMPONENTS - 1)];
	if (j->kind == RULE_PATH) {
		__u64 bit = index < 63 ? index : 63;
		if (filter.path_depths >> bit & 1)
			j->signs |= signs_of(RULE_PATH, RULE_WHOLE, hash);
	} else {
		j->signs |= signs_of(j->kind, RULE_WHOLE, hash);
	}
	return 0;
}

static __always_inline void look_up(struct judge_context *context, __u32 kind)
{
	context->judge->kind = kind;
	LOOP(MAX_COMPONENTS, look_up_step, context);
}

/* Judges the name whose path lies in the scratch up to its walk's end. */
static __always_inline __u32 judge_name(struct scratch *scratch, struct inode *inode)
{
	if (!has_path(inode) || scratch->walk.partial)
		return verdict_of(0);
	struct judge *j = judge_get();
	if (!j)
		return VERDICT_NONE;
	struct judge_context context = { .scratch = scratch, .judge = j };
	j->kind = RULE_PATH;
	judge_names(&context, 0, scratch->walk.at);
	look_up(&context, RULE_PATH);
	__u32 signs = j->signs;
	judge_put(j);
	return verdict_of(signs);
}
#else
static __always_inline __u32 judge_name(struct scratch *scratch, struct inode *inode)
{
	return VERDICT_NONE;
}
#endif

#endif
