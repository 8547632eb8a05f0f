/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of VFS, file systems, the page cache and the block layer, from their beginning
 * to their end, on kernels that let programs hook functions: one record a call, made at
 * the end. Nothing here looks at arguments, which differ between kernels.
 */
#include "include/layers.h"

#define FUNCTION_SPAN(function, kind)                                                              \
	SEC("fentry/" #function)                                                                   \
	int BPF_PROG(begin_##function)                                                             \
	{                                                                                          \
		span_begins(kind);                                                                 \
		return 0;                                                                          \
	}                                                                                          \
	SEC("fexit/" #function)                                                                    \
	int BPF_PROG(end_##function)                                                               \
	{                                                                                          \
		span_ends(kind);                                                                   \
		return 0;                                                                          \
	}

/* Named do_file_open in newer kernels. */
FUNCTION_SPAN(do_filp_open, SPAN_OPEN)
FUNCTION_SPAN(do_file_open, SPAN_FILE_OPEN)
FUNCTION_SPAN(vfs_read, SPAN_VFS_READ)
FUNCTION_SPAN(vfs_write, SPAN_VFS_WRITE)
FUNCTION_SPAN(vfs_fsync_range, SPAN_VFS_FSYNC)
FUNCTION_SPAN(ext4_file_read_iter, SPAN_EXT4_READ)
FUNCTION_SPAN(ext4_file_write_iter, SPAN_EXT4_WRITE)
FUNCTION_SPAN(xfs_file_read_iter, SPAN_XFS_READ)
FUNCTION_SPAN(xfs_file_write_iter, SPAN_XFS_WRITE)
FUNCTION_SPAN(xfs_file_fsync, SPAN_XFS_FSYNC)
FUNCTION_SPAN(btrfs_file_read_iter, SPAN_BTRFS_READ)
FUNCTION_SPAN(btrfs_file_write_iter, SPAN_BTRFS_WRITE)
FUNCTION_SPAN(btrfs_sync_file, SPAN_BTRFS_FSYNC)
FUNCTION_SPAN(filemap_read, SPAN_CACHE_READ)
FUNCTION_SPAN(generic_perform_write, SPAN_CACHE_WRITE)
FUNCTION_SPAN(iomap_file_buffered_write, SPAN_IOMAP_WRITE)
FUNCTION_SPAN(filemap_fault, SPAN_CACHE_FAULT)
FUNCTION_SPAN(submit_bio, SPAN_SUBMIT)

/* Functions that --function names: user space sets where the programs are attached instead. */
#define NAMED_FUNCTION(number)                                                                     \
	SEC("fentry/vfs_read")                                                                     \
	int BPF_PROG(begin_function_##number)                                                      \
	{                                                                                          \
		span_begins(SPAN_FUNCTION + number);                                               \
		return 0;                                                                          \
	}                                                                                          \
	SEC("fexit/vfs_read")                                                                      \
	int BPF_PROG(end_function_##number)                                                        \
	{                                                                                          \
		span_ends(SPAN_FUNCTION + number);                                                 \
		return 0;                                                                          \
	}

NAMED_FUNCTION(0)
NAMED_FUNCTION(1)
NAMED_FUNCTION(2)
NAMED_FUNCTION(3)
NAMED_FUNCTION(4)
NAMED_FUNCTION(5)
NAMED_FUNCTION(6)
NAMED_FUNCTION(7)
