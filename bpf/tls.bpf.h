/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections that a library encrypts (--spans): one record for each call of its functions that moved
 * bytes, with the first of these, as they are before they are encrypted or after they were decrypted.
 *
 * A call of a thread is kept in its state from the entry to the return of the function. The stream socket
 * that the system calls in between use is the socket of the connection; what these move is encrypted,
 * so nothing of it is sent. A function that a thread calls within another one, such as for a connection
 * within a connection, moves bytes that are encrypted again, and is left out.
 */
#include "include/layers.h"

/* The cookie of a program: what the function does. */
enum { TLS_FUNCTIONS = 15 };

/* Sends the record of a call that moved bytes, or of another event of a connection. */
static __noinline int tls_output(struct task_struct *task, struct tls_call *tls, __u64 now,
				 __u64 bytes, __u32 event)
{
	struct content_scratch *scratch = NULL;
	__u32 pid = READ_TYPED(task, tgid);
	__u64 want = bytes < config.spans ? bytes : config.spans;
	if (!tls)
		return 0;
	if (content_has_room(want))
		scratch = content_scratch_get();
	if (!scratch) {
		layer_lost(LOST_TLS, tls->began_ns, now - tls->began_ns, pid, 0);
		return 0;
	}
	struct content_walk *w = &scratch->walk;
	struct data_call_record *record = &scratch->record;
	__builtin_memset(record, 0, sizeof(*record));
	record->call.kind = RECORD_CONTENT_PART;
	record->call.fd = -1;
	record->call.ts_ns = tls->began_ns;
	record->call.dur_ns = now - tls->began_ns;
	record->call.pid = pid;
	record->call.tid = READ_TYPED(task, pid);
	record->call.ret = bytes;
	record->call.file = tls->file;
	record->call.aux = event;
	record->call.offset = NO_OFFSET;
	record->call.size = tls->session;
	record->status = CONTENT_TLS;
	record->content_bytes = bytes;
	__builtin_memset(w, 0, sizeof(*w));
	if (tls->buffer) {
		w->from.address = tls->buffer;
		w->from.left = bytes;
		w->want = want;
	}
	struct content_context context = { .scratch = scratch };
	if (w->want)
		bpf_loop(BEGINNING_STEPS, content_step, &context, 0);
	/* Bytes that cannot be read are missing from the record, not the record. */
	bool sent = content_send(scratch, w->status ? 0 : w->at);
	__sync_lock_test_and_set(&scratch->busy, 0);
	if (!sent)
		layer_lost(LOST_TLS, tls->began_ns, now - tls->began_ns, pid, 0);
	return 0;
}

static __always_inline int tls_begins(struct pt_regs *regs, __u64 cookie)
{
	struct task_struct *task = current_task();
	struct task_state *state = state_if_recorded(task);
	if (!is_recorded(state))
		return 0;
	__u64 sp = regs->sp, now = bpf_ktime_get_ns();
	struct tls_call *tls = &state->tls;
	if (tls->began_ns && tls_call_is_over(task, tls, sp))
		tls->began_ns = 0;
	if (tls->began_ns)
		return 0;
	__u64 args[LIBRARY_ARGS];
	function_arguments(regs, args);
	__u32 function = cookie & TLS_FUNCTIONS;
	tls->began_ns = now;
	tls->sp = sp;
	tls->session = args[0];
	tls->buffer = 0;
	tls->length_at = 0;
	tls->file = 0;
	tls->function = function;
	switch (function) {
	case TLS_READ_EX:
	case TLS_WRITE_EX:
		tls->length_at = args[3];
		tls->buffer = args[1];
		break;
	case TLS_READ:
	case TLS_WRITE:
		tls->buffer = args[1];
		break;
	case TLS_END:
		tls_output(task, tls, now, 0, TLS_EVENT_END);
		tls->began_ns = 0;
		break;
	default:
		break;
	}
	return 0;
}

static __always_inline int tls_ends(struct pt_regs *regs, __u64 cookie)
{
	struct task_struct *task = current_task();
	struct task_state *state = state_if_recorded(task);
	if (!is_recorded(state))
		return 0;
	__u64 now = bpf_ktime_get_ns();
	struct tls_call *tls = &state->tls;
	if (!tls->began_ns || tls->sp != regs->sp - RETURNS_ABOVE ||
	    tls->function != (cookie & TLS_FUNCTIONS))
		return 0;
	__s64 ret = function_result(regs);
	__u32 event = TLS_EVENT_SENT;
	__u64 bytes = 0;
	switch (tls->function) {
	case TLS_READ:
		event = TLS_EVENT_RECEIVED;
		bytes = (__s32)ret > 0 ? (__s32)ret : 0;
		break;
	case TLS_WRITE:
		bytes = (__s32)ret > 0 ? (__s32)ret : 0;
		break;
	case TLS_SEND_FILE:
		bytes = ret > 0 ? ret : 0;
		break;
	case TLS_READ_EX:
	case TLS_WRITE_EX:
		if (tls->function == TLS_READ_EX)
			event = TLS_EVENT_RECEIVED;
		if ((__s32)ret < 1 ||
		    bpf_probe_read_user(&bytes, sizeof(bytes), (void *)tls->length_at))
			bytes = 0;
		break;
	case TLS_HANDSHAKE:
		event = TLS_EVENT_HANDSHAKE;
		break;
	default:
		break;
	}
	if (bytes || event == TLS_EVENT_HANDSHAKE)
		tls_output(task, tls, now, bytes, event);
	tls->began_ns = 0;
	return 0;
}

#define TLS_PROGRAMS(suffix, entry, end)                                                           \
	SEC(entry)                                                                                 \
	int tls_enter##suffix(struct pt_regs *ctx)                                                 \
	{                                                                                          \
		return tls_begins(ctx, bpf_get_attach_cookie(ctx));                                \
	}                                                                                          \
	SEC(end)                                                                                   \
	int tls_return##suffix(struct pt_regs *ctx)                                                \
	{                                                                                          \
		return tls_ends(ctx, bpf_get_attach_cookie(ctx));                                  \
	}

TLS_PROGRAMS(_multi, "uprobe.multi", "uretprobe.multi")
TLS_PROGRAMS(_single, "uprobe", "uretprobe")
