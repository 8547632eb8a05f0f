/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's structures, as far as they are read here. Offsets come from the
 * running kernel's BTF when the programs are loaded (CO-RE), so members stand
 * in any order and only by name; members that not every kernel has are tested
 * with bpf_core_field_exists before they are read.
 */
#ifndef FATHOM_KERNEL_H
#define FATHOM_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_AVAIL_DATA = 0,
};

#define CORE __attribute__((preserve_access_index))

struct hlist_node {
	struct hlist_node *next, **pprev;
} CORE;

/* Its first member is a pointer: what a slot of an array of pointers is cast
 * to so that the slot can be loaded directly. */
struct hlist_head {
	struct hlist_node *first;
} CORE;

struct hlist_bl_node {
	struct hlist_bl_node *next, **pprev;
} CORE;

typedef struct {
	int counter;
} CORE atomic_t;

typedef struct {
	__s64 counter;
} CORE atomic64_t;

typedef atomic64_t atomic_long_t;

typedef struct {
	atomic_long_t refcnt;
} CORE file_ref_t;

struct qstr {
	__u64 hash_len; /* length in the upper half */
	const unsigned char *name;
} CORE;

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
} CORE;

struct inode {
	__u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	__s64 i_size;
	__u32 i_generation;
	void *i_private;
} CORE;

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
} CORE;

struct vfsmount {
	struct dentry *mnt_root;
} CORE;

struct proc_ns_operations {
	const char *name;
} CORE;

struct ns_common {
	const struct proc_ns_operations *ops;
	__u32 inum;
} CORE;

/* fs/mount.h */
struct mnt_namespace {
	struct ns_common ns;
	struct mount *root;
} CORE;

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct mnt_namespace *mnt_ns;
} CORE;

struct nsproxy {
	struct mnt_namespace *mnt_ns;
} CORE;

/* fs/btrfs/btrfs_inode.h, ctree.h: a subvolume has a device number of its own,
 * and inode numbers are unique in a subvolume only. */
struct btrfs_root {
	__u32 anon_dev;
} CORE;

struct btrfs_inode {
	struct btrfs_root *root;
	struct inode vfs_inode;
} CORE;

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
} CORE;

struct file {
	struct path f_path;
	struct inode *f_inode;
	struct address_space *f_mapping;
	__s64 f_pos;
	__u32 f_flags;
	__u32 f_mode;
	void *private_data;
	file_ref_t f_ref;
} CORE;

struct net {
	struct ns_common ns;
} CORE;

typedef struct {
	struct net *net;
} CORE possible_net_t;

struct in6_addr {
	__u8 bytes[16];
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	__u16 skc_family;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} CORE;

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	__u16 sk_type;
	__u16 sk_protocol;
} CORE;

struct socket {
	short type;
	struct file *file;
	struct sock *sk;
} CORE;

struct unix_sock {
	struct sock *peer;
} CORE;

struct tcp_sock {
	__u32 total_retrans;
} CORE;

/* Before 6.13 a file's references were a plain counter. */
struct file___f_count {
	atomic_long_t f_count;
} CORE;

struct fdtable {
	__u32 max_fds;
	struct file **fd;
} CORE;

struct files_struct {
	atomic_t count;
	struct fdtable *fdt;
} CORE;

struct fs_struct {
	struct path root;
	struct path pwd;
} CORE;

struct kioctx_table;

/* include/linux/maple_tree.h: the mappings of a process, from 6.1 on. */
struct maple_tree {
	void *ma_root;
} CORE;
struct maple_range_64 {
	unsigned long pivot[15];
	void *slot[16];
} CORE;
struct maple_arange_64 {
	unsigned long pivot[9];
	void *slot[10];
} CORE;

typedef struct seqcount {
	__u32 sequence;
} CORE seqcount_t;

struct mm_struct {
	struct kioctx_table *ioctx_table;
	seqcount_t mm_lock_seq; /* from 6.14 on */
	struct maple_tree mm_mt;
	unsigned long arg_start;
	unsigned long arg_end;
	unsigned long exec_vm;
	struct file *exe_file;
} CORE;

struct mm_struct___counter {
	__s32 mm_lock_seq;
} CORE;

typedef struct {
	__u32 val;
} CORE kuid_t;

struct cred {
	kuid_t uid;
} CORE;

struct kernfs_node {
	struct kernfs_node *__parent;
	const char *name;
	__u64 id;
} CORE;

/* Before 6.15 the parent had no underscores. */
struct kernfs_node___parent {
	struct kernfs_node *parent;
} CORE;

struct cgroup {
	struct kernfs_node *kn;
} CORE;

struct css_set {
	struct cgroup *dfl_cgrp;
} CORE;

struct thread_info {
	unsigned long flags;
	__u32 status;
} CORE;

struct seccomp {
	__s32 mode;
} CORE;

/* Where the processor has the thread pointer of user space. */
struct thread_struct {
#if defined(__TARGET_ARCH_x86)
	unsigned long fsbase;
#else
	struct {
		unsigned long tp_value;
	} uw;
#endif
} CORE;

struct task_struct {
	struct thread_info thread_info;
	unsigned int in_iowait : 1;
	void *worker_private;
	__u32 flags;
	void *stack;
	/* Not without SMP. Unsigned, as a byte since 7.x: the loader adjusts the load. */
	__u32 on_cpu;
	__s32 pid;
	__s32 tgid;
	__s32 exit_code;
	__u64 start_time;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	const struct cred *cred;
	char comm[16];
	struct fs_struct *fs;
	struct files_struct *files;
	struct mm_struct *mm;
	__s32 pagefault_disabled;
	struct seccomp seccomp;
	struct css_set *cgroups;
	struct nsproxy *nsproxy;
	struct thread_struct thread;
} CORE;

/* The state of a task, from 5.14 on and before. */
struct task_struct___state {
	unsigned int __state;
} CORE;
struct task_struct___volatile_state {
	volatile long state;
} CORE;

/* io_uring/rsrc.h; in it a pointer to struct file with flags in its low bits. */
struct io_rsrc_node {
	unsigned long file_ptr;
} CORE;

struct io_rsrc_data {
	__u32 nr;
	struct io_rsrc_node **nodes;
} CORE;

struct io_file_table {
	struct io_rsrc_data data;
} CORE;

/* Before 6.13 the table of registered files was an array of such pointers. */
struct io_fixed_file {
	unsigned long file_ptr;
} CORE;
struct io_file_table___array {
	struct io_fixed_file *files;
} CORE;
struct io_ring_ctx___array {
	struct io_file_table___array file_table;
	__u32 nr_user_files;
} CORE;

struct io_uring_sqe;

struct io_uring_cqe {
	__u64 user_data;
	__s32 res;
	__u32 flags;
} CORE;

struct io_ring_ctx {
	__u32 flags;
	__u32 *sq_array;
	struct io_uring_sqe *sq_sqes;
	__u32 cached_sq_head;
	__u32 sq_entries;
	struct io_file_table file_table;
} CORE;

struct io_wq_work {
	int cancel_seq;
} CORE;

struct io_kiocb {
	struct file *file;
	__u8 opcode;
	struct io_ring_ctx *ctx;
	struct io_wq_work work;
} CORE;

struct kiocb {
	struct file *ki_filp;
	__s64 ki_pos;
	void *ki_complete;
} CORE;

struct io_event {
	__u64 data;
	__u64 obj;
	__s64 res;
	__s64 res2;
} CORE;

struct kioctx {
	unsigned long user_id;
	__u32 nr_events;
	__u32 tail;
} CORE;

struct kioctx_table {
	__u32 nr;
	struct kioctx *table[0];
} CORE;

struct aio_kiocb {
	struct kioctx *ki_ctx;
	struct io_event ki_res;
} CORE;
struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
} CORE;

struct address_space {
	struct inode *host;
} CORE;

struct page {
	struct address_space *mapping;
	unsigned long index;
	unsigned long compound_head;
} CORE;

/* From 7.1 on: of a page that is not the first of its folio, either the address
 * of the first with bit 0 set, or a mask for its own address with bit 0 set. */
struct page___info {
	unsigned long compound_info;
} CORE;

/* From 6.16 on a page has no index; that of its folio counts. */
struct folio {
	struct address_space *mapping;
	unsigned long index;
	unsigned long _flags_1;
} CORE;

/* Before 6.6 the order of a folio had a member of its own. */
struct folio___order {
	unsigned char _folio_order;
} CORE;

struct bio_vec {
	struct page *bv_page;
	__u32 bv_len;
	__u32 bv_offset;
} CORE;

struct bvec_iter {
	__u64 bi_sector;
	__u32 bi_size;
} CORE;

struct bio {
	struct bio *bi_next;
	void *bi_private;
	__u32 bi_opf;
	struct bvec_iter bi_iter;
	__u16 bi_vcnt;
	struct bio_vec *bi_io_vec;
} CORE;

enum pageflags { PG_writeback = 1, PG_uptodate = 2, PG_head = 3 };

/* include/linux/blk-mq.h */
struct gendisk {
	int major;
	int first_minor;
	char disk_name[32];
} CORE;

struct request_queue {
	struct gendisk *disk;
} CORE;

struct request {
	struct request_queue *q;
	__u32 cmd_flags;
	__u32 rq_flags;
	__u32 __data_len;
	__u64 __sector;
	struct bio *bio;
	struct bio *biotail;
	__u64 start_time_ns;
} CORE;
/* Before 5.17 a request told its disk itself. */
struct request___disk {
	struct gendisk *rq_disk;
} CORE;
enum req_flag_bits {
	__REQ_SYNC = 1,
	__REQ_META,
	__REQ_PRIO,
	__REQ_FUA,
	__REQ_PREFLUSH,
	__REQ_RAHEAD,
	__REQ_BACKGROUND,
	__REQ_NOWAIT,
	__REQ_IDLE,
};

struct block_device {
	__u32 bd_dev;
} CORE;

/* include/linux/jbd2.h */
typedef struct journal_s {
	struct block_device *j_fs_dev;
} CORE journal_t;
typedef struct transaction_s {
	__u32 t_tid;
} CORE transaction_t;

struct irqaction {
	const char *name;
} CORE;

/* io_uring/io-wq.c, include/linux/io_uring_types.h */
struct io_worker {
	struct io_wq_work *cur_work;
} CORE;

struct iov_iter {
	unsigned long count;
} CORE;

struct kernel_siginfo;

struct linux_binprm;

/* Open-coded iterator over tasks: kernels from 6.7. */
struct bpf_iter_task {
	__u64 opaque[3];
} __attribute__((aligned(8)));
enum { BPF_TASK_ITER_PROC_THREADS = 2 };
/* What programs on classic tracepoints get. */
struct trace_event_raw_sys_enter {
	long id;
} CORE;
struct trace_event_raw_sys_exit {
	long id;
	long ret;
} CORE;
struct trace_event_raw_sched_process_fork {
	__s32 child_pid;
} CORE;
struct trace_event_raw_sched_process_exec {
	__s32 old_pid;
} CORE;

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 seq_num;
} CORE;
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} CORE;
struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	void *key;
	void *value;
} CORE;

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long bp, bx, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, sp;
} CORE;
/* arch/x86/include/asm/thread_info.h */
#define TIF_SIGPENDING 2
/* arch/x86/include/asm/thread_info.h: the call came through a 32-bit entry. */
#define TS_COMPAT 0x0002
#elif defined(__TARGET_ARCH_arm64)
/* arch/arm64/include/asm/thread_info.h: the task runs a 32-bit program. */
#define TIF_32BIT 22
#define TIF_SIGPENDING 0
/* arch/arm64/include/asm/ptrace.h */
struct pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 orig_x0;
	__s32 syscallno;
} CORE;
#else
#error "no register layout for this architecture"
#endif

/* Constants of the user interface. */
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFIFO 0010000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_IFDIR 0040000
#define O_APPEND 00002000
/* include/linux/fs.h: the open that returned the file has made it. */
#define FMODE_CREATED 0x100000
#define RWF_APPEND 0x10
#define RWF_NOAPPEND 0x20
/* include/uapi/linux/magic.h: files that have no path. */
#define ANON_INODE_FS 0x09041934
#define NS_FS 0x6e736673
#define PID_FS 0x50494446
#define PIPE_FS 0x50495045
#define SOCK_FS 0x534f434b
#define AT_FDCWD (-100)
#define BTRFS_SUPER_MAGIC 0x9123683e
#define MAX_ERRNO 4095
#define IOV_MAX 1024
/* include/linux/sched.h: threads that the kernel makes for io_uring. */
#define PF_IO_WORKER 0x00000010
#define PF_KTHREAD 0x00200000
#define TASK_INTERRUPTIBLE 0x1
#define TASK_UNINTERRUPTIBLE 0x2
/* Stopped by a signal, or by a debugger. */
#define TASK_STOPPED 0xc
/* include/trace/events/lock.h: it spins, and does not sleep. */
#define LCB_F_SPIN 1
#define AT_EMPTY_PATH 0x1000
#define F_GETLK 5
#define F_SETLKW 7
#define F_SETOWN_EX 15
#define F_GETOWN_EX 16
#define F_OFD_GETLK 36
#define F_OFD_SETLKW 38
#define F_GET_RW_HINT 1035
#define F_SET_FILE_RW_HINT 1038
#define RESOLVE_IN_ROOT 0x10
#define EFAULT 14

#endif
