/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The programs that fathom loads into the kernel, one file a layer.
 */
#include "include/maps.h"

#include "syscalls.bpf.h"
#include "tasks.bpf.h"
#if HAVE_OPERATIONS
#include "uring.bpf.h"
#include "aio.bpf.h"
#endif

char LICENSE[] SEC("license") = "GPL";
