//! Every place where programs hang, in the order in which they are attached:
//! what is missing without it, and what the kernel must have for it.

use super::{Feature, NO_COUNTERS, NO_STACKS};

/// A place that is hooked while recording.
pub(super) struct Row {
    /// What the hook serves: it is loaded when that is wanted.
    pub(super) feature: Feature,
    /// Programs that can serve it; the first that fits the kernel is taken.
    pub(super) forms: &'static [Form],
    /// What is missing without it.
    pub(super) without: &'static str,
    /// Nothing can be recorded without it.
    pub(super) required: bool,
}

/// A program, and which kernels it fits.
pub(super) struct Form {
    pub(super) program: &'static str,
    pub(super) at: At,
}

/// Where a program hangs.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// On the tracepoint that its section names.
    Section,
    /// The same on a classic tracepoint, only for kernels that would leave out
    /// runs of the other form (`HAVE_CLASSIC` in `bpf/include/compat.h`).
    Classic,
    /// On the BTF tracepoint that its section names, when that has this form.
    Typed {
        arguments: usize,
        /// Name of the structure that the first of them points to.
        first: Option<&'static str>,
    },
    /// On each occurrence of a software event of perf, on every CPU.
    Perf {
        /// The event as perf calls it.
        event: &'static str,
        /// Its number.
        config: u32,
    },
}

/// On a tracepoint that all kernels have in one form.
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

/// On a BTF tracepoint, or on the classic one.
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

/// On a BTF tracepoint whose arguments differ between kernels.
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

/// On one of several places of which kernels have one or the other.
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

/// Where direct I/O begins: one place, or on older kernels one a file system.
macro_rules! direct {
    ($program:literal) => {
        either!(Fs, NO_DIRECT, "layer_dio_begin", $program)
    };
}

/// At the beginning or the end of a function, which may have other names in other
/// kernels.
macro_rules! function {
    ($($program:literal),+ => $what:literal) => {
        either!(Vfs, concat!($what, " is not told apart"), $($program),+)
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
            without: "page faults have no duration, and major and failed ones can't be told from \
                      others",
            required: false,
        }
    };
}

const NO_DIRECT: &str = "direct I/O of io_uring and AIO is put down to the call that submits it";
const NO_BEGIN: &str = "page faults have no duration and no access";

/// Tasks first, so that no call is recorded of a task that is unknown.
pub(super) const ROWS: &[Row] = &[
    // Its classic form does not tell which thread is renamed.
    tracepoint!(
        Calls,
        "task_rename",
        "names that threads give themselves are missing"
    ),
    // Its classic form does not tell which task moves.
    tracepoint!(
        Calls,
        "cgroup_attach_task",
        "--cgroup and --container keep to the cgroup in which a task began"
    ),
    call_or_task!(
        "sched_process_exit",
        "sched_process_exit_classic",
        false,
        "ends of threads and calls that they were in are missing"
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
        "operations of io_uring that the kernel refuses at once are not recorded",
        "uring_req_failed": 3 Some("io_uring_sqe")
    ),
    typed!(
        Uring,
        "which operations of io_uring went through a worker thread is not known",
        "uring_queue_async_work": 2 Some("io_kiocb")
    ),
    typed!(
        Uring,
        "operations that complete while the ring of completions is full have no result",
        "uring_cqe_overflow": 5 None
    ),
    typed!(
        Aio,
        "the end of direct I/O of AIO is when its completion was found, not exact",
        "aio_dio_complete": 3 Some("kiocb")
    ),
    // Kernels for arm64 have a function instead of both.
    either!(Faults, NO_BEGIN, "page_fault_user", "page_fault_function"),
    either!(Faults, NO_BEGIN, "page_fault_kernel", "page_fault_function"),
    tracepoint!(
        Faults,
        "mm_filemap_map_pages",
        "which pages a fault mapped along is missing"
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
        "fsync in ext4 is not told apart"
    ),
    tracepoint!(
        Fs,
        "layer_ext4_sync_exit",
        "fsync in ext4 is not told apart"
    ),
    direct!("operation_ext4_file_read_iter"),
    direct!("operation_ext4_file_write_iter"),
    direct!("operation_xfs_file_read_iter"),
    direct!("operation_xfs_file_write_iter"),
    direct!("operation_btrfs_file_read_iter"),
    direct!("operation_btrfs_file_write_iter"),
    tracepoint!(Fs, "layer_dio_complete", "direct I/O is not told apart"),
    tracepoint!(
        Fuse,
        "layer_fuse_send",
        "requests to FUSE servers are not told apart"
    ),
    tracepoint!(
        Fuse,
        "layer_fuse_end",
        "requests to FUSE servers are not told apart"
    ),
    typed!(
        Block,
        "requests to devices have no cause",
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
        "when the block layer had a request for the device is missing"
    ),
    typed!(
        Block,
        "when a request was queued is missing",
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
        "requests that a device gave back count twice in its queue",
        "layer_rq_requeue": 1 Some("request"),
        "layer_rq_requeue_behind_queue": 2 Some("request_queue")
    ),
    typed!(
        Block,
        "requests that were merged may lend their times to others",
        "layer_rq_merge": 1 Some("request"),
        "layer_rq_merge_behind_queue": 2 Some("request_queue")
    ),
    tracepoint!(
        Block,
        "layer_rq_complete",
        "requests to devices are not recorded"
    ),
    either!(
        Block,
        "who made pages dirty that are written back is not known",
        "layer_dirty_folio",
        "layer_dirty_page"
    ),
    tracepoint!(
        Block,
        "layer_handle_start",
        "whose changes a journal of ext4 commits is not known"
    ),
    tracepoint!(
        Block,
        "layer_start_commit",
        "whose changes a journal of ext4 commits is not known"
    ),
    tracepoint!(
        Block,
        "layer_end_commit",
        "whose changes a journal of ext4 commits is not known"
    ),
    tracepoint!(Irq, "layer_irq_entry", "interrupts of devices are missing"),
    tracepoint!(Irq, "layer_irq_exit", "interrupts of devices are missing"),
    tracepoint!(Irq, "layer_softirq_entry", "softirqs are missing"),
    tracepoint!(Irq, "layer_softirq_exit", "softirqs are missing"),
    // Elsewhere these are interrupts like those of devices.
    #[cfg(target_arch = "x86_64")]
    tracepoint!(
        Irq,
        "layer_timer_entry",
        "interrupts of the timer are missing"
    ),
    #[cfg(target_arch = "x86_64")]
    tracepoint!(
        Irq,
        "layer_timer_exit",
        "interrupts of the timer are missing"
    ),
    #[cfg(target_arch = "x86_64")]
    tracepoint!(
        Irq,
        "layer_call_entry",
        "interrupts by other processors are missing"
    ),
    #[cfg(target_arch = "x86_64")]
    tracepoint!(
        Irq,
        "layer_call_exit",
        "interrupts by other processors are missing"
    ),
    tracepoint!(Sched, "layer_waking", "who woke a thread is missing"),
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
    // Behind the program that records the call.
    tracepoint!(Stacks, "call_stack", NO_STACKS),
    tracepoint!(Counters, "counters_switch", NO_COUNTERS),
];
