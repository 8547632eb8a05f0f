/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sockets and pipes as streams of bytes: how many bytes have gone before those of a call, in
 * its direction, and what the kernel knows of the two ends.
 *
 * Bytes are counted from the call on that makes the stream. A position is known when no
 * other call in the same direction was in progress at the same time: each call counts
 * itself in at its entry, and looks at its return whether others came. Whatever cannot be
 * counted, as an operation of io_uring, leaves itself counted in, so that no later call
 * has a position.
 */
#ifndef FATHOM_STREAMS_H
#define FATHOM_STREAMS_H

#include "call_filter.h"

/* include/linux/socket.h */
enum { AF_INET = 2, AF_INET6 = 10, AF_UNIX = 1, SOCK_STREAM = 1, IPPROTO_TCP = 6 };
enum { MSG_OOB = 1, MSG_PEEK = 2, MSG_TRUNC = 0x20, MSG_ERRQUEUE = 0x2000 };
/* include/uapi/asm-generic/fcntl.h */
#if defined(__TARGET_ARCH_x86)
enum { O_DIRECT = 040000 };
#else
enum { O_DIRECT = 0200000 };
#endif

/* The address of the inode of `file`: a number, of which a key can be made. */
static __always_inline __u64 inode_address(struct file *file)
{
	__u64 address = 0;
	bpf_core_read(&address, sizeof(address), &file->f_inode);
	return address;
}

#if HAVE_FETCHING_ATOMICS
struct stream {
	__u64 bytes;
	__u32 inside; /* calls that are in progress */
	__u32 entries; /* calls that have begun */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536); /* 1 where streams are not recorded */
	__type(key, struct stream_key);
	__type(value, struct stream);
} streams SEC(".maps");

static __always_inline bool is_stream(__u32 mode)
{
	return (mode & S_IFMT) == S_IFSOCK || (mode & S_IFMT) == S_IFIFO;
}

/* A stream begins: nothing has gone yet in either direction. */
static __noinline int begin_stream(__u64 inode, __u64 ino)
{
	struct stream fresh = {};
	struct stream_key key = { .inode = inode | STREAM_IN, .ino = ino };
	bpf_map_update_elem(&streams, &key, &fresh, BPF_ANY);
	key.inode = inode | STREAM_OUT;
	bpf_map_update_elem(&streams, &key, &fresh, BPF_ANY);
	return 0;
}

/* From now on nobody can tell where bytes of this file are in their stream. */
static __noinline int lose_stream(__u64 inode, __u64 ino, __u32 directions)
{
	struct stream_key key = { .inode = inode | STREAM_IN, .ino = ino };
	struct stream *stream = directions & STREAM_IN ? bpf_map_lookup_elem(&streams, &key) : NULL;
	if (stream)
		__sync_fetch_and_add(&stream->inside, 1);
	key.inode = inode | STREAM_OUT;
	stream = directions & STREAM_OUT ? bpf_map_lookup_elem(&streams, &key) : NULL;
	if (stream)
		__sync_fetch_and_add(&stream->inside, 1);
	return 0;
}

/* A call on the file at `file_address` begins. */
static __noinline int enter_stream(struct stream_use *use, __u64 file_address, __u32 direction)
{
	use->stage = STREAM_NONE;
	if (!file_address)
		return 0;
	struct file *file = KERNEL_OBJECT(file, file_address);
	__u64 address = inode_address(file);
	struct inode *inode = KERNEL_OBJECT(inode, address);
	if (!is_stream(READ(inode, i_mode)))
		return 0;
	if (direction == (STREAM_IN | STREAM_OUT))
		return lose_stream(address, READ(inode, i_ino), direction);
	use->key.inode = address | direction;
	use->key.ino = READ(inode, i_ino);
	struct stream *stream = bpf_map_lookup_elem(&streams, &use->key);
	if (!stream)
		return 0;
	__u32 inside = __sync_fetch_and_add(&stream->inside, 1);
	use->entries = __sync_fetch_and_add(&stream->entries, 1) + 1;
	use->stage = inside ? STREAM_SHARED : STREAM_ALONE;
	return 0;
}

/* It returns `ret`; `flags`: MSG_ flags of a call of sockets. */
static __noinline int leave_stream(struct stream_use *use, __s64 ret, __u32 flags)
{
	use->offset = NO_OFFSET;
	if (use->stage == STREAM_NONE)
		return 0;
	struct stream *stream = bpf_map_lookup_elem(&streams, &use->key);
	if (!stream)
		return 0;
	bool in_line = !(flags & (MSG_OOB | MSG_ERRQUEUE));
	__u64 moved = ret > 0 && in_line && !(flags & MSG_PEEK) ? ret : 0;
	__u64 before = __sync_fetch_and_add(&stream->bytes, moved);
	/* Behind the sum: another call that has added to it has come in before that. */
	__u32 entries = __sync_fetch_and_add(&stream->entries, 0);
	/* A byte out of band is in no place that both ends count alike. */
	if (!(flags & MSG_OOB) || ret <= 0)
		__sync_fetch_and_add(&stream->inside, -1);
	if (ret > 0 && in_line && use->stage == STREAM_ALONE && entries == use->entries)
		use->offset = before;
	use->stage = STREAM_NONE;
	return 0;
}

static __always_inline void enter_streams(struct task_struct *task, struct task_state *state,
					  const volatile struct call_desc *desc,
					  struct pt_regs *regs, bool compat)
{
	enter_stream(&state->streams[0], state->file_ptr, desc->stream);
	state->streams[1].stage = STREAM_NONE;
	if (desc->stream2)
		enter_stream(&state->streams[1],
			     (__u64)file_of_fd(task, argument(regs, desc->fd2, compat)),
			     desc->stream2);
}

static __always_inline void leave_streams(struct task_state *state,
					  const volatile struct call_desc *desc,
					  struct pt_regs *regs, bool compat, __s64 ret)
{
	__u32 flags = desc->any_type && desc->aux != NO_ARG ? argument(regs, desc->aux, compat) : 0;
	leave_stream(&state->streams[0], ret, flags);
	leave_stream(&state->streams[1], ret, 0);
}
#else
static __always_inline int begin_stream(__u64 inode, __u64 ino)
{
	return 0;
}

static __always_inline int lose_stream(__u64 inode, __u64 ino, __u32 directions)
{
	return 0;
}

static __always_inline void enter_streams(struct task_struct *task, struct task_state *state,
					  const volatile struct call_desc *desc,
					  struct pt_regs *regs, bool compat)
{
}

static __always_inline void leave_streams(struct task_state *state,
					  const volatile struct call_desc *desc,
					  struct pt_regs *regs, bool compat, __s64 ret)
{
	state->streams[0].offset = NO_OFFSET;
	state->streams[1].offset = NO_OFFSET;
}
#endif

/* What the kernel knows of the socket behind `file`. */
static __noinline int fill_flow(struct flow_facts *facts, __u64 file_address)
{
	struct file *file = (struct file *)file_address;
	struct socket *socket = (struct socket *)BPF_CORE_READ(file, private_data);
	struct sock *sock = BPF_CORE_READ(socket, sk);
	if (!sock)
		return 0;
	facts->family = BPF_CORE_READ(sock, __sk_common.skc_family);
	facts->sock_type = BPF_CORE_READ(sock, sk_type);
	facts->protocol = BPF_CORE_READ(sock, sk_protocol);
	facts->net_ns = BPF_CORE_READ(sock, __sk_common.skc_net.net, ns.inum);
	if (facts->family == AF_INET || facts->family == AF_INET6) {
		facts->local_port = BPF_CORE_READ(sock, __sk_common.skc_num);
		facts->remote_port = __builtin_bswap16(BPF_CORE_READ(sock, __sk_common.skc_dport));
	}
	if (facts->family == AF_INET) {
		*(__u32 *)facts->local = BPF_CORE_READ(sock, __sk_common.skc_rcv_saddr);
		*(__u32 *)facts->remote = BPF_CORE_READ(sock, __sk_common.skc_daddr);
	} else if (facts->family == AF_INET6) {
		bpf_core_read(facts->local, 16, &sock->__sk_common.skc_v6_rcv_saddr);
		bpf_core_read(facts->remote, 16, &sock->__sk_common.skc_v6_daddr);
	} else if (facts->family == AF_UNIX) {
		struct sock *peer = BPF_CORE_READ((struct unix_sock *)sock, peer);
		if (peer)
			facts->peer_ino = BPF_CORE_READ(peer, sk_socket, file, f_inode, i_ino);
	}
	if (facts->protocol == IPPROTO_TCP && facts->sock_type == SOCK_STREAM) {
		facts->retransmits = BPF_CORE_READ((struct tcp_sock *)sock, total_retrans);
		facts->tcp = 1;
	}
	return 0;
}

/* The two descriptors that a call such as pipe has made; false when they cannot be read. */
static __always_inline bool read_pair(struct task_state *state,
				      const volatile struct call_desc *desc, __s32 fds[2])
{
	return !bpf_probe_read_user(fds, 2 * sizeof(fds[0]),
				    (void *)state->args[desc->structure & 7]);
}

/* Keeps the handles of the two files that such a call has made for add_flow(), which is so far
 * down that before 6.8 the stacks of the calls leave no room to look for them. */
static __always_inline void name_pair(struct task_struct *task, struct task_state *state,
				      const volatile struct call_desc *desc, __u64 now)
{
	__s32 fds[2];
	if (!read_pair(state, desc, fds))
		return;
	struct file *file = file_of_fd(task, fds[0]);
	state->file = file ? handle_of(state, file, now) : 0;
	file = file_of_fd(task, fds[1]);
	state->file2 = file ? handle_of(state, file, now) : 0;
}

/* Appends the facts of the socket or pipe that a call has made or works on to its record, which
 * is made in `scratch`. A stream that the call has made begins. */
VERIFIED_ONCE int add_flow(struct task_state *state, struct scratch *scratch)
{
	if (!state || !scratch)
		return 0;
	const volatile struct call_desc *desc = desc_of_state(state);
	struct wide_call_record *record = (void *)scratch->data;
	__s64 ret = record->call.ret;
	struct task_struct *task = current_task();
	__s32 fds[2] = { -1, -1 };
	if (desc->flow == FLOW_FD)
		fds[0] = record->call.fd;
	else if (ret < 0)
		return 0;
	else if (desc->flow == FLOW_RESULT)
		fds[0] = ret;
	else if (!read_pair(state, desc, fds))
		return 0;
	__u32 at = scratch->walk.at;
	if (at >= SCRATCH_BYTES / 2)
		return 0;
	at &= SCRATCH_BYTES / 2 - 1;
	struct file *file = file_of_fd(task, fds[0]);
	if (!file)
		return 0;
	struct inode *inode = READ(file, f_inode);
	__u32 type = READ(inode, i_mode) & S_IFMT;
	if (type != S_IFSOCK && type != S_IFIFO)
		return 0;
	struct flow_facts *facts = (void *)scratch->data + at;
	__builtin_memset(facts, 0, sizeof(*facts));
	facts->ino = READ(inode, i_ino);
	facts->handle = desc->flow == FLOW_PAIR ? state->file : record->call.file;
	if (type == S_IFSOCK)
		fill_flow(facts, (__u64)file);
	bool bytes = type == S_IFSOCK ? facts->sock_type == SOCK_STREAM &&
						(facts->family == AF_UNIX || facts->tcp)
				      : !(READ(file, f_flags) & O_DIRECT);
	bool fresh = config.streams && desc->flow != FLOW_FD && bytes;
	if (fresh)
		begin_stream(inode_address(file), facts->ino);
	struct file *other = fds[1] >= 0 ? file_of_fd(task, fds[1]) : NULL;
	if (other) {
		struct inode *inode2 = READ(other, f_inode);
		facts->peer = state->file2;
		if (fresh && inode2 != inode)
			begin_stream(inode_address(other), READ(inode2, i_ino));
	}
	record->arg_flags |= ARG_FLOW;
	record->struct_len += sizeof(*facts);
	scratch->walk.at = at + sizeof(*facts);
	return 0;
}

#endif
