/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Static probes of programs (--usdt): one record each time that a recorded thread comes by one. User
 * space makes spans of a probe that begins something and of the one that ends it.
 *
 * A probe is a `nop` in the program, with a note that tells where its arguments are. Programs that
 * prepare arguments only for a listener read a counter first (a semaphore), which the kernel raises
 * for as long as this program is attached.
 */
#include "include/layers.h"

/* The arguments at each place; the cookie of a program is the place's number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_USDT_PLACES);
	__type(key, __u32);
	__type(value, struct usdt_desc);
} usdt_places SEC(".maps");

/* The value of an argument; false when it cannot be read. */
static __always_inline bool usdt_value(struct pt_regs *regs, __u8 argument, __u16 at, __s64 value,
				       __u64 *out)
{
	enum { REGISTERS = 511 };
	__u64 of_register = 0;
	if (argument == USDT_NONE)
		return false;
	*out = value;
	if (argument == USDT_CONSTANT)
		return true;
	if (bpf_probe_read_kernel(&of_register, sizeof(of_register),
				  (void *)regs + (at & REGISTERS)))
		return false;
	*out = of_register;
	if (argument == USDT_REGISTER)
		return true;
	return !bpf_probe_read_user(out, sizeof(*out), (void *)(of_register + value));
}

/* Reads the text behind the record; how many bytes it has, without NUL. */
static __always_inline __u32 usdt_text(struct pt_regs *regs, struct usdt_desc *desc,
				       struct usdt_record *record, void *text)
{
	__u64 address, length;
	if (config.detail != DETAIL_FULL ||
	    !usdt_value(regs, desc->text, desc->text_at, desc->text_value, &address) || !address)
		return 0;
	if (desc->length == USDT_NONE) {
		long n = bpf_probe_read_user_str(text, MAX_USDT_TEXT, (void *)address);
		if (n <= 1 || n > MAX_USDT_TEXT)
			return 0;
		record->cut = n == MAX_USDT_TEXT;
		return n - 1;
	}
	if (!usdt_value(regs, desc->length, desc->length_at, desc->length_value, &length))
		return 0;
	__u32 bits = 8 << (desc->length_bits & USDT_ARGUMENT_BITS);
	if (bits < 64)
		length &= (1ULL << bits) - 1;
	if (length >= MAX_USDT_TEXT) {
		record->cut = 1;
		length = MAX_USDT_TEXT - 1;
	}
	__u32 n = length & (MAX_USDT_TEXT - 1);
	return bpf_probe_read_user(text, n, (void *)address) ? 0 : n;
}

static __always_inline int usdt_comes_by(struct pt_regs *regs, __u64 cookie)
{
	struct task_struct *task = current_task();
	if (!is_recorded(state_if_recorded(task)))
		return 0;
	__u32 place = cookie & (MAX_USDT_PLACES - 1);
	struct usdt_desc *desc = bpf_map_lookup_elem(&usdt_places, &place);
	__u64 now = bpf_ktime_get_ns();
	__u32 pid = READ_TYPED(task, tgid);
	struct scratch *scratch = scratch_get();
	if (!desc || !scratch) {
		layer_lost(LOST_USDT, now, 0, pid, 0);
		return 0;
	}
	struct usdt_record *record = (void *)scratch->data;
	__builtin_memset(record, 0, sizeof(*record));
	record->kind = RECORD_USDT;
	record->place = place;
	record->tid = READ_TYPED(task, pid);
	record->ts_ns = now;
	record->sp = regs->sp;
	record->pid = pid;
	__u32 bytes = usdt_text(regs, desc, record, scratch->data + sizeof(*record));
	record->text_len = bytes;
	bool sent = wide_output(scratch->data, sizeof(*record) + (bytes & (MAX_USDT_TEXT - 1)));
	scratch_put(scratch);
	if (sent)
		COUNT(usdt);
	else
		layer_lost(LOST_USDT, now, 0, pid, 0);
	return 0;
}

SEC("uprobe.multi")
int usdt_probe_multi(struct pt_regs *ctx)
{
	return usdt_comes_by(ctx, bpf_get_attach_cookie(ctx));
}

SEC("uprobe")
int usdt_probe_single(struct pt_regs *ctx)
{
	return usdt_comes_by(ctx, bpf_get_attach_cookie(ctx));
}
