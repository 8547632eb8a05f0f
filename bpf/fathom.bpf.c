/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The programs that fathom loads into the kernel, one file a layer.
 */
#include "include/maps.h"

#include "syscalls.bpf.h"
#include "tasks.bpf.h"
#include "stacks.bpf.h"
#include "perf_counters.bpf.h"
#if HAVE_OPERATIONS
#include "uring.bpf.h"
#include "aio.bpf.h"
#endif
#if HAVE_FAULTS
#include "faults.bpf.h"
#include "writeback.bpf.h"
#endif
#if HAVE_LAYERS
#include "block.bpf.h"
#include "irq.bpf.h"
#include "sched.bpf.h"
#include "cache.bpf.h"
#include "fs.bpf.h"
#include "fuse.bpf.h"
#include "nfs.bpf.h"
#include "functions.bpf.h"
#endif
#if HAVE_LIBRARY
#include "library.bpf.h"
#include "usdt.bpf.h"
#if HAVE_CONTENT
#include "tls.bpf.h"
#endif
#endif

char LICENSE[] SEC("license") = "GPL";
