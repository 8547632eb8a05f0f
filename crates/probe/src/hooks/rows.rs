//! All attach points, in the order of attaching: what is missing without each, and what it needs
//! from the kernel.

use super::{Feature, NO_COUNTERS, NO_FUNCTION, NO_LIBRARY, NO_STACKS, NO_TLS, NO_USDT};

const NO_LOCKS: &str = "waits for locks of the kernel have the reason other";

/// An attach point.
pub(super) struct Row {
    /// The feature that the hook belongs to.
    pub(super) feature: Feature,
    /// Programs for the hook; fathom takes the first that fits the kernel.
    pub(super) forms: &'static [Form],
    /// The consequence if it is missing.
    pub(super) without: &'static str,
    /// Nothing can be recorded without it.
    pub(super) required: bool,
}

/// A program, and which kernels it fits.
pub(super) struct Form {
    pub(super) program: &'static str,
    pub(super) at: At,
}

/// The kind of attach point.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// The tracepoint that the program's section names.
    Section,
    /// The same as a classic tracepoint, only for kernels that skip runs of the other form
    /// (`HAVE_CLASSIC` in `bpf/include/compat.h`).
    Classic,
    /// The BTF tracepoint that the program's section names, if it has this form.
    Typed {
        arguments: usize,
        /// Name of the structure that the first of them points to.
        first: Option<&'static str>,
    },
    /// Each occurrence of a software event of perf, on every CPU.
    Perf {
        /// Name of the event in perf.
        event: &'static str,
        /// Its number.
        config: u32,
    },
    /// Places in files of programs, to which crate::library, crate::usdt, and crate::tls attach. `multi`: many
    /// at once, which kernels can since 6.6.
    Places { multi: bool },
}

/// A tracepoint that has the same form in all kernels.
macro_rules! tracepoint {
    ($feature:ident, $program:literal, $without:expr) => {
        Row {
            feature: Feature::$feature,
            forms: &[Form {
                program: $program,
                at: At::Section,
            }],
            without: $without,
            required: false,
        }
    };
}

/// A BTF tracepoint, or the classic one.
macro_rules! call_or_task {
    ($program:literal, $classic:literal, $required:literal, $without:expr) => {
        Row {
            feature: Feature::Calls,
            forms: &[
                Form {
                    program: $classic,
                    at: At::Classic,
                },
                Form {
                    program: $program,
                    at: At::Section,
                },
            ],
            without: $without,
            required: $required,
        }
    };
}

/// A BTF tracepoint whose arguments differ between kernels.
macro_rules! typed {
    ($feature:ident, $without:expr, $($program:literal: $arguments:literal $first:expr),+) => {
        Row {
            feature: Feature::$feature,
            forms: &[$(Form {
                program: $program,
                at: At::Typed {
                    arguments: $arguments,
                    first: $first,
                },
            }),+],
            without: $without,
            required: false,
        }
    };
}

/// One of several attach points, of which each kernel has one.
macro_rules! either {
    ($feature:ident, $without:expr, $($program:literal),+) => {
        Row {
            feature: Feature::$feature,
            forms: &[$(Form {
                program: $program,
                at: At::Section,
            }),+],
            without: $without,
            required: false,
        }
    };
}

/// Places in files of programs: entry or return of functions of libraries, and static probes.
macro_rules! places {
    ($feature:ident, $without:expr, $multi:literal, $single:literal) => {
        Row {
            feature: Feature::$feature,
            forms: &[
                Form {
                    program: $multi,
                    at: At::Places { multi: true },
                },
                Form {
                    program: $single,
                    at: At::Places { multi: false },
                },
            ],
            without: $without,
            required: false,
        }
    };
}

/// Start of direct I/O: one attach point, or one per file system in older kernels.
macro_rules! direct {
    ($program:literal) => {
        either!(Fs, NO_DIRECT, "layer_dio_begin", $program)
    };
}

/// Start or end of a function, whose name may differ between kernels.
macro_rules! function {
    ($($program:literal),+ => $what:literal) => {
        either!(Vfs, concat!($what, " is not a separate slice"), $($program),+)
    };
}

/// Beginning or end of a function that `--function` names.
macro_rules! named_function {
    ($program:literal) => {
        either!(Functions, NO_FUNCTION, $program)
    };
}

macro_rules! perf {
    ($program:literal, $event:literal, $config:expr) => {
        Row {
            feature: Feature::Faults,
            forms: &[Form {
                program: $program,
                at: At::Perf {
                    event: $event,
                    config: $config,
                },
            }],
            without: "page faults have no duration, and major and failed faults are not distinguished \
                      from others",
            required: false,
        }
    };
}

const NO_DIRECT: &str = "direct I/O of io_uring and AIO is attributed to the submitting call";
const NO_BEGIN: &str = "page faults have no duration and no access";

/// Tasks first, so that no call of an unknown task is recorded.
pub(super) const ROWS: &[Row] = &[
    // The classic form does not name the renamed thread.
    tracepoint!(Calls, "task_rename", "new names of threads are missing"),
    // The classic form does not name the task that moves.
    tracepoint!(
        Calls,
        "cgroup_attach_task",
        "--cgroup, --container, --unit, --pod, and --namespace use the cgroup in which a task started"
    ),
    call_or_task!(
        "sched_process_exit",
        "sched_process_exit_classic",
        false,
        "ends of threads, and calls in progress at those ends, are missing"
    ),
    call_or_task!(
        "sched_process_exec",
        "sched_process_exec_classic",
        false,
        "commands are not recorded from their start; command lines are missing"
    ),
    call_or_task!(
        "sched_process_fork",
        "sched_process_fork_classic",
        false,
        "children and new threads are not recorded"
    ),
    call_or_task!(
        "sys_exit",
        "sys_exit_classic",
        true,
        "no calls can be recorded"
    ),
    call_or_task!(
        "sys_enter",
        "sys_enter_classic",
        true,
        "no calls can be recorded"
    ),
    typed!(
        Uring,
        "operations of io_uring have no result and no end",
        "uring_complete": 3 Some("io_ring_ctx"),
        "uring_complete_values": 7 None
    ),
    typed!(
        Uring,
        "operations of io_uring are not recorded",
        "uring_submit_req": 1 Some("io_kiocb"),
        "uring_submit_sqe": 2 Some("io_kiocb")
    ),
    typed!(
        Uring,
        "operations of io_uring that the kernel rejects at submission are not recorded",
        "uring_req_failed": 3 Some("io_uring_sqe")
    ),
    typed!(
        Uring,
        "whether a worker thread carried out an operation of io_uring is unknown",
        "uring_queue_async_work": 2 Some("io_kiocb")
    ),
    typed!(
        Uring,
        "operations of io_uring that complete while the completion queue is full have no result",
        "uring_cqe_overflow": 5 None
    ),
    typed!(
        Aio,
        "direct I/O of AIO ends when the program reads its completion, which may be later than the true end",
        "aio_dio_complete": 3 Some("kiocb")
    ),
    // Kernels for arm64 have a function instead of both.
    either!(Faults, NO_BEGIN, "page_fault_user", "page_fault_function"),
    either!(Faults, NO_BEGIN, "page_fault_kernel", "page_fault_function"),
    tracepoint!(
        Faults,
        "mm_filemap_map_pages",
        "the pages that a fault mapped around it are missing"
    ),
    tracepoint!(
        Faults,
        "signal_generate",
        "faults that failed are not recorded"
    ),
    tracepoint!(
        Faults,
        "block_bio_queue",
        "write-back of mapped files is not recorded"
    ),
    perf!(
        "page_fault_minor",
        "minor-faults",
        libbpf_sys::PERF_COUNT_SW_PAGE_FAULTS_MIN
    ),
    perf!(
        "page_fault_major",
        "major-faults",
        libbpf_sys::PERF_COUNT_SW_PAGE_FAULTS_MAJ
    ),
    either!(
        Cache,
        "hits of the page cache are missing",
        "layer_get_pages",
        "layer_filemap_read",
        "layer_buffered_read"
    ),
    typed!(
        Cache,
        "misses of the page cache are missing",
        "layer_add_page": 1 Some("folio"),
        "layer_add_single_page": 1 Some("page")
    ),
    tracepoint!(
        Fs,
        "layer_ext4_sync_enter",
        "fsync in ext4 is not a separate slice"
    ),
    tracepoint!(
        Fs,
        "layer_ext4_sync_exit",
        "fsync in ext4 is not a separate slice"
    ),
    direct!("operation_ext4_file_read_iter"),
    direct!("operation_ext4_file_write_iter"),
    direct!("operation_xfs_file_read_iter"),
    direct!("operation_xfs_file_write_iter"),
    direct!("operation_btrfs_file_read_iter"),
    direct!("operation_btrfs_file_write_iter"),
    tracepoint!(
        Fs,
        "layer_dio_complete",
        "direct I/O is not a separate slice"
    ),
    tracepoint!(
        Fuse,
        "layer_fuse_send",
        "requests to FUSE servers are not separate slices"
    ),
    tracepoint!(
        Fuse,
        "layer_fuse_end",
        "requests to FUSE servers are not separate slices"
    ),
    tracepoint!(
        Nfs,
        "layer_nfs_begin",
        "requests to NFS servers are not separate slices"
    ),
    tracepoint!(
        Nfs,
        "layer_nfs_end",
        "requests to NFS servers are not separate slices"
    ),
    typed!(
        Block,
        "block requests have no cause",
        "layer_bio_queue": 1 Some("bio"),
        "layer_bio_queue_behind_queue": 2 Some("request_queue")
    ),
    typed!(
        Block,
        "bios that the block layer splits have no cause",
        "layer_split": 2 Some("bio"),
        "layer_split_behind_queue": 3 Some("request_queue")
    ),
    tracepoint!(
        Block,
        "layer_rq_start",
        "the time at which the block layer made a request is missing"
    ),
    typed!(
        Block,
        "the time at which a request was queued is missing",
        "layer_rq_insert": 1 Some("request"),
        "layer_rq_insert_behind_queue": 2 Some("request_queue")
    ),
    typed!(
        Block,
        "the time in the device is missing",
        "layer_rq_issue": 1 Some("request"),
        "layer_rq_issue_behind_queue": 2 Some("request_queue")
    ),
    typed!(
        Block,
        "requests that a device returned count twice in its queue",
        "layer_rq_requeue": 1 Some("request"),
        "layer_rq_requeue_behind_queue": 2 Some("request_queue")
    ),
    typed!(
        Block,
        "merged requests may give their times to other requests",
        "layer_rq_merge": 1 Some("request"),
        "layer_rq_merge_behind_queue": 2 Some("request_queue")
    ),
    tracepoint!(
        Block,
        "layer_rq_complete",
        "block requests are not recorded"
    ),
    either!(
        Block,
        "the cause of write-back is unknown",
        "layer_dirty_folio",
        "layer_dirty_page"
    ),
    tracepoint!(
        Block,
        "layer_handle_start",
        "the cause of ext4's journal commits is unknown"
    ),
    tracepoint!(
        Block,
        "layer_start_commit",
        "the cause of ext4's journal commits is unknown"
    ),
    tracepoint!(
        Block,
        "layer_end_commit",
        "the cause of ext4's journal commits is unknown"
    ),
    tracepoint!(Irq, "layer_irq_entry", "device interrupts are missing"),
    tracepoint!(Irq, "layer_irq_exit", "device interrupts are missing"),
    tracepoint!(Irq, "layer_softirq_entry", "softirqs are missing"),
    tracepoint!(Irq, "layer_softirq_exit", "softirqs are missing"),
    // On other architectures these are device interrupts.
    //
    #[cfg(target_arch = "x86_64")]
    tracepoint!(Irq, "layer_timer_entry", "timer interrupts are missing"),
    #[cfg(target_arch = "x86_64")]
    tracepoint!(Irq, "layer_timer_exit", "timer interrupts are missing"),
    #[cfg(target_arch = "x86_64")]
    tracepoint!(
        Irq,
        "layer_call_entry",
        "interrupts by other CPUs are missing"
    ),
    #[cfg(target_arch = "x86_64")]
    tracepoint!(
        Irq,
        "layer_call_exit",
        "interrupts by other CPUs are missing"
    ),
    tracepoint!(Sched, "layer_waking", "who woke a thread is missing"),
    tracepoint!(Sched, "layer_contention_begin", NO_LOCKS),
    tracepoint!(Sched, "layer_contention_end", NO_LOCKS),
    typed!(
        Sched,
        "waits are not recorded",
        "layer_switch": 4 None,
        "layer_switch_stateless": 3 None
    ),
    function!("begin_do_filp_open", "begin_do_file_open" => "the lookup of paths"),
    function!("end_do_filp_open", "end_do_file_open" => "the lookup of paths"),
    function!("begin_vfs_read" => "reading in VFS"),
    function!("end_vfs_read" => "reading in VFS"),
    function!("begin_vfs_write" => "writing in VFS"),
    function!("end_vfs_write" => "writing in VFS"),
    function!("begin_vfs_fsync_range" => "fsync in VFS"),
    function!("end_vfs_fsync_range" => "fsync in VFS"),
    function!("begin_ext4_file_read_iter" => "reading in ext4"),
    function!("end_ext4_file_read_iter" => "reading in ext4"),
    function!("begin_ext4_file_write_iter" => "writing in ext4"),
    function!("end_ext4_file_write_iter" => "writing in ext4"),
    function!("begin_xfs_file_read_iter" => "reading in xfs"),
    function!("end_xfs_file_read_iter" => "reading in xfs"),
    function!("begin_xfs_file_write_iter" => "writing in xfs"),
    function!("end_xfs_file_write_iter" => "writing in xfs"),
    function!("begin_xfs_file_fsync" => "fsync in xfs"),
    function!("end_xfs_file_fsync" => "fsync in xfs"),
    function!("begin_btrfs_file_read_iter" => "reading in btrfs"),
    function!("end_btrfs_file_read_iter" => "reading in btrfs"),
    function!("begin_btrfs_file_write_iter" => "writing in btrfs"),
    function!("end_btrfs_file_write_iter" => "writing in btrfs"),
    function!("begin_btrfs_sync_file" => "fsync in btrfs"),
    function!("end_btrfs_sync_file" => "fsync in btrfs"),
    function!("begin_filemap_read" => "reading from the page cache"),
    function!("end_filemap_read" => "reading from the page cache"),
    function!("begin_generic_perform_write" => "writing to the page cache"),
    function!("end_generic_perform_write" => "writing to the page cache"),
    function!("begin_iomap_file_buffered_write" => "writing to the page cache"),
    function!("end_iomap_file_buffered_write" => "writing to the page cache"),
    function!("begin_filemap_fault" => "a fault in the page cache"),
    function!("end_filemap_fault" => "a fault in the page cache"),
    function!("begin_submit_bio" => "submitting to the block layer"),
    function!("end_submit_bio" => "submitting to the block layer"),
    named_function!("begin_function_0"),
    named_function!("end_function_0"),
    named_function!("begin_function_1"),
    named_function!("end_function_1"),
    named_function!("begin_function_2"),
    named_function!("end_function_2"),
    named_function!("begin_function_3"),
    named_function!("end_function_3"),
    named_function!("begin_function_4"),
    named_function!("end_function_4"),
    named_function!("begin_function_5"),
    named_function!("end_function_5"),
    named_function!("begin_function_6"),
    named_function!("end_function_6"),
    named_function!("begin_function_7"),
    named_function!("end_function_7"),
    // Behind the program that records the call.
    tracepoint!(Stacks, "call_stack", NO_STACKS),
    tracepoint!(Counters, "counters_switch", NO_COUNTERS),
    places!(
        Library,
        NO_LIBRARY,
        "library_enter_multi",
        "library_enter_single"
    ),
    places!(
        Library,
        NO_LIBRARY,
        "library_return_multi",
        "library_return_single"
    ),
    places!(Usdt, NO_USDT, "usdt_probe_multi", "usdt_probe_single"),
    places!(Tls, NO_TLS, "tls_enter_multi", "tls_enter_single"),
    places!(Tls, NO_TLS, "tls_return_multi", "tls_return_single"),
];
