/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Empty programs at every kind of place where a call can be seen, to measure what
 * the place costs (./do bench hooks). Programs of one kind begin with its name.
 */
#include <linux/types.h>
#include <bpf_helpers.h>

#if defined(__TARGET_ARCH_x86)
#define CALL "__x64_sys_pread64"
#else
#define CALL "__arm64_sys_pread64"
#endif

#define EMPTY(name, section)                                                                       \
	SEC(section) int name(void *ctx)                                                           \
	{                                                                                          \
		return 0;                                                                          \
	}

EMPTY(btf_enter, "tp_btf/sys_enter")
EMPTY(btf_exit, "tp_btf/sys_exit")
EMPTY(classic_enter, "tracepoint/raw_syscalls/sys_enter")
EMPTY(classic_exit, "tracepoint/raw_syscalls/sys_exit")
EMPTY(percall_enter, "tracepoint/syscalls/sys_enter_pread64")
EMPTY(percall_exit, "tracepoint/syscalls/sys_exit_pread64")
EMPTY(fentry_enter, "fentry/" CALL)
EMPTY(fentry_exit, "fexit/" CALL)
EMPTY(kprobe_enter, "kprobe.multi/" CALL)
EMPTY(kprobe_exit, "kretprobe.multi/" CALL)

char LICENSE[] SEC("license") = "GPL";
