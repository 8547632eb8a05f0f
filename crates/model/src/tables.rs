//! The tables of a session: the one place that defines their columns. Schema
//! pages, Parquet schemas and SQL views follow from it.

use crate::batch::{Batch, ColumnData, Null};
use crate::strings::StringTable;
pub use crate::table::{Column, ColumnType, Difference, Holds, Stored, Table, Term};

#[macro_use]
mod define;
use define::{MAX_RESERVED, value};

/// Version of the tables and of the layout of a session. A reader refuses sessions of other
/// versions.
pub const SCHEMA_VERSION: u32 = 6;

/// The parts of a block request's time.
static BLOCK_TIMES: [Difference; 2] = [
    Difference {
        name: "wait_ns",
        doc: "From queued_at_ns to issued_at_ns, nanoseconds: the time in queues.",
        minuend: "issued_at_ns",
        subtrahend: "queued_at_ns",
    },
    Difference {
        name: "device_ns",
        doc: "From issued_at_ns to completed_at_ns, nanoseconds: the time in the device.",
        minuend: "completed_at_ns",
        subtrahend: "issued_at_ns",
    },
];

impl Table {
    /// Columns that SQL adds.
    pub fn differences(&self) -> &'static [Difference] {
        match self.name == BLOCK.name {
            true => &BLOCK_TIMES,
            false => &[],
        }
    }
}

tables! {
    /// One row per completed storage call or operation of io_uring or Linux AIO, and one per call
    /// or operation that was still in progress when the recording or its thread ended. An operation
    /// that completes several times (multishot) has one row per completion; each starts where the
    /// previous one ended. Row groups are stored in the order in which the calls ended. Within a row
    /// group, the rows of a thread and call are adjacent: use ORDER BY if the order matters.
    SYSCALLS syscalls SyscallRows SyscallRow key [] {
        /// Id of the request, unique in the session: a number from 1, in the order in which
        /// requests ended or in which an event below them was first seen.
        rid: I64 set,
        /// When the call was entered or the operation submitted: CLOCK_MONOTONIC
        /// nanoseconds.
        ts_ns: I64 set,
        /// From entry to exit, or from submission to completion, nanoseconds; for a call that had
        /// not ended, its time so far. Null if an imported log does not contain it.
        dur_ns: I64 null,
        /// Process (thread group) id in the host's namespace; null if an imported log does not
        /// contain it.
        pid: I32 null,
        /// Thread id in the host's namespace; for an operation, the thread that submitted it, which
        /// with SQPOLL is the kernel's thread of the io_uring.
        tid: I32 set,
        /// Name of the thread when the call ended.
        comm: Str(Name) null,
        /// CPU on which the call ended; null if an imported log does not contain it.
        cpu: I32 null,
        /// Name of the call, as in strace; for an operation, the name in the kernel's headers:
        /// IORING_OP_READV, IOCB_CMD_PREAD.
        syscall: Str(Words) set,
        /// data, metadata, directory, xattr, memory, async, socket, or wait.
        class: Str(Words) set,
        /// Return value of the call, negative errno for an error; null for a call that had not
        /// ended.
        ret: I64 null,
        /// Name of the error, null if there was none.
        errno: Str(Words) null,
        /// Descriptor of the call, as passed; with FIXED_FILE in op_flags, the index of a
        /// registered file.
        fd: I32 null,
        /// File of the call, in table files.
        file_id: I64 null,
        /// Byte in the file where the I/O took place; null if the call has none, or if other calls
        /// used the same position so that it is unknown. Of a stream (a pipe, TCP, a Unix stream
        /// socket): the number of bytes that went in its direction before; table flows has the other
        /// end, whose call on the same bytes has the same positions. Null for a stream that is older
        /// than the recording, for datagrams, where calls in the same direction overlapped, once an
        /// operation of io_uring, sendmmsg, recvmmsg, tee, vmsplice, or a byte out of band was used on
        /// it, on kernels before 5.17, and if filters or --syscalls leave out calls that move bytes.
        file_offset: I64 null,
        /// Bytes requested, as the kernel interprets them: negative if it takes a signed number.
        /// Null if it is 2^63 or more; args then contains it.
        size: I64 null,
        /// Bytes moved.
        bytes: I64 null,
        /// Flags, decoded as in strace.
        flags: Str(Words) null,
        /// First path (or text of a symbolic link) as passed. Null with a note in args if it was a
        /// null pointer (path_arg=NULL) or could not be read (path_arg=partial); the same note
        /// marks a path that is cut after 4,095 bytes.
        path_arg: Str(Path) null,
        /// Second path as passed.
        path_arg2: Str(Path) null,
        /// Absolute path of the file at the time of the call: the path of the open file, or else
        /// path_arg made absolute, in which known links to directories are replaced. Null if there
        /// is no path: a null, empty, unreadable, or cut path_arg.
        path: Str(Path) null,
        /// The same for the second path or file.
        path2: Str(Path) null,
        /// XXH64 with seed 0 of the first content_bytes of the bytes moved (recorded with --content
        /// hash), its 64 bits as a signed number; null if the call moved nothing or the memory
        /// could not be read.
        hash: I64(Content) null,
        /// Further arguments, name=value, decoded as in strace: also structs, the number of
        /// segments (iovcnt), the results of stat and statfs, values that do not fit their column,
        /// and null pointers in place of a position (offset_ptr=NULL). A descriptor before a path
        /// is followed by its path at the time of the call, as in strace -y: dirfd=3</etc>,
        /// dirfd=AT_FDCWD</home> with the working directory.
        args: Str(Arguments) null,
        /// The interface: syscall, io_uring, or aio (an iocb of io_submit).
        api: Str(Words) set,
        /// Of an operation the flags with which it was submitted
        /// (FIXED_FILE, DRAIN, LINK, HARDLINK, ASYNC, BUFFER_SELECT, CQE_SKIP: the
        /// kernel's IOSQE_), and what became of it: SQPOLL, submitted by the
        /// kernel's thread of the ring; WORKER, carried out by a worker thread; DIRECT,
        /// opened as a registered file; MORE, further completions follow;
        /// END_APPROXIMATE, the end is when the completion was found, the operation itself
        /// ended before; COMPLETION_UNSEEN, it ended, but how and when was not seen. 0: none.
        /// Of a call STARTED_BEFORE_TRACE when a thread waited in it as the recording took
        /// that thread in: ts_ns is then, dur_ns counts from then; else null.
        op_flags: Str(Words) null,
        /// The program's identifier of an operation: user_data of io_uring, aio_data of AIO, as a
        /// signed number; null for a call.
        user_data: I64 null,
        /// Bytes that hash or content covers: fewer than bytes if the call moved more than
        /// --content-max.
        content_bytes: I64 null,
        /// The first bytes moved (recorded with --content plain).
        content: Blob(Content) null,
        /// Pages of the file that the call read through the page cache; null if it looked up none,
        /// or layer pagecache was not recorded. View pagecache selects these columns.
        cache_pages: I32 null,
        /// Pages among cache_pages that were missing and had to be read; null like cache_pages.
        cache_misses: I32 null,
        /// Pages that the kernel read ahead of the request. Null, like the next columns, if the
        /// call did nothing in the page cache.
        readahead_pages: I32 null,
        /// Pages that writes added without a lookup.
        added_pages: I32 null,
        /// Folios (one page, or several that the kernel manages together) that became dirty.
        dirtied: I32 null,
        /// Changes to metadata that joined a transaction of jbd2 (ext4).
        journal_handles: I32 null,
        /// The innermost library call that made the call, in table user_calls; null for an operation,
        /// and if no recorded function made it. After longjmp or an exception it may be a library
        /// call that was left by that, until its place on the stack is used again.
        user_call: I64 null,
    }

    /// One row per page fault on a mapped file: the first access to a page, or the first write to a
    /// page that was read before. Accesses to pages that are already mapped cause no fault and have
    /// no row; a fault may also map neighboring pages (around_offset), which then cause none.
    /// Faults on memory without a file are not I/O and have no rows.
    FAULTS faults FaultRows FaultRow key [] {
        /// Id of the request, unique in the session over all tables.
        rid: I64 set,
        /// When the fault occurred, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// Until the kernel had handled it, nanoseconds, including waits and retries; null if its
        /// start or end was not observed.
        dur_ns: I64 null,
        /// Process (thread group) id in the host's namespace.
        pid: I32 set,
        /// Thread id in the host's namespace.
        tid: I32 set,
        /// Name of the thread.
        comm: Str(Name) null,
        /// CPU on which the fault ended.
        cpu: I32 set,
        /// read, write, or exec (instruction fetch); null if not observed.
        access: Str(Words) null,
        /// minor: the page was in memory. major: it had to be read, or the fault waited for it.
        /// failed: SIGBUS, beyond the end of the file or after a read error. Null if the end was
        /// not observed.
        kind: Str(Words) null,
        /// absent: the page was not mapped. protected: it was, but not for this access, such as the
        /// first write after a read. Null if not observed.
        cause: Str(Words) null,
        /// user: the program accessed the page. kernel: a call did so for the program (read into
        /// mapped memory). Null if not observed.
        origin: Str(Words) null,
        /// shared or private. A write to a private mapping copies the page and
        /// does not reach the file.
        mapping: Str(Words) set,
        /// Accessed address.
        address: I64 set,
        /// File mapped at the address, in table files.
        file_id: I64 null,
        /// Its path at the time of the fault.
        path: Str(Path) null,
        /// Byte in the file at the address, not rounded to a page.
        file_offset: I64 set,
        /// Start of the range of the file whose cached pages the kernel also mapped (fault-around);
        /// null if there was none or the kernel does not report it.
        around_offset: I64 null,
        /// Bytes of that range; the page of the fault may be one of them.
        around_bytes: I64 null,
        /// Pages that the fault added to the page cache. Null, like the next columns, if it did
        /// nothing there, or if it occurred during a call, whose row contains them.
        added_pages: I32 null,
        /// Folios that became dirty; 65535 stands for 65535 or more.
        dirtied: I32 null,
        /// Changes to metadata that joined a transaction of jbd2 (ext4); 65535 stands for 65535 or
        /// more.
        journal_handles: I32 null,
    }

    /// One row per request in which a file system submitted dirty pages of a file to the block
    /// layer. Covers files on which recorded tasks have had faults in a writable shared mapping,
    /// from the first such fault on; pages dirtied by write(2) or by other tasks are included. File
    /// systems without a device of their own (tmpfs, network) have no rows.
    WRITEBACK writeback WritebackRows WritebackRow key [] {
        /// Id, unique in the session over all tables.
        rid: I64 set,
        /// When the request was submitted, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// Process that submitted it: a kernel worker, or a task that requested the write-back.
        pid: I32 set,
        /// Thread that submitted it.
        tid: I32 set,
        /// Name of that thread.
        comm: Str(Name) null,
        /// CPU.
        cpu: I32 set,
        /// Call of a recorded task during which it was submitted: msync, fsync, ...; null if a
        /// worker or an unrecorded task submitted it.
        syscall: Str(Words) null,
        /// The file, in table files.
        file_id: I64 null,
        /// Its path.
        path: Str(Path) null,
        /// Byte in the file where the first page starts.
        file_offset: I64 set,
        /// Bytes of all pages of the request.
        bytes: I64 set,
        /// Whether the pages are contiguous in the file; if not, the bytes are not those from
        /// file_offset on.
        contiguous: Bool set,
    }

    /// One row per block request of any process: requests of other processes also fill the queues
    /// of a device. Requests in flight at the start of the recording lack their earlier times.
    /// Requests whose end was not observed have neither completed_at_ns, dur_ns, error, nor cpu:
    /// they were in flight when the recording ended, or the kernel ran no programs at that moment.
    /// Devices without requests of their own (dm, md, zram) are visible through the devices below
    /// them.
    BLOCK block BlockRows BlockRow key [] {
        /// Id of this row, unique in the session; table bios refers to it.
        block_id: I64 set,
        /// Request of a program that caused the first of its bios; null if no recorded request did,
        /// or the cause is unknown, as of bios that a limit of a cgroup or the device mapper held
        /// back. A fault on memory without a file (swap) has no row. Table bios has all causes.
        rid: I64 null,
        /// The first of the times below, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// From ts_ns to completion, nanoseconds; null if the end was not observed.
        dur_ns: I64 null,
        /// Name of the device: sda, nvme0n1, loop0. Empty for a queue without a disk
        /// (administration of an NVMe controller).
        device: Str(Words) set,
        /// First sector on the device, in sectors of 512 bytes; null for a flush and for driver
        /// commands.
        sector: I64 null less "sector_beyond_offset" [Term::plus("file_offset").over(512)],
        /// Bytes moved; if the end was not observed, the bytes of the whole request.
        bytes: I64 set,
        /// read, write, flush, discard, secure_erase, zone_append, write_zeroes, driver_in and
        /// driver_out (commands that a driver or program passes through to the device, which alone
        /// defines their meaning), or the kernel's number.
        op: Str(Words) set,
        /// SYNC, META, PRIO, FUA, PREFLUSH, RAHEAD, BACKGROUND, NOWAIT, IDLE, joined by |; null if
        /// none.
        flags: Str(Words) null,
        /// The kernel's blk_status_t; 0 on success, null if the end was not observed.
        error: I32 null,
        /// When the file system submitted the first of its bios.
        queued_at_ns: I64 null less "queued_after_ns" [Term::plus("ts_ns")],
        /// When the block layer had allocated a request; the wait before is for a free request. A
        /// limit of the cgroup (io.max) holds bios back before all of these times; the wait of the
        /// thread has that time.
        started_at_ns: I64 null less "started_after_ns" [Term::plus("ts_ns")],
        /// When it entered the queue of the I/O scheduler; null if it bypassed the scheduler.
        inserted_at_ns: I64 null less "inserted_after_ns" [Term::plus("ts_ns")],
        /// When the block layer issued it to the device's driver.
        issued_at_ns: I64 null less "issued_after_ns" [Term::plus("ts_ns")],
        /// When the device had completed it; null if not observed.
        completed_at_ns: I64 null less "completed_late_ns" [
            Term::plus("ts_ns"), Term::plus("dur_ns")
        ],
        /// Process that submitted the first bio.
        pid: I32 null,
        /// Thread that submitted the first bio: of the program, or a kernel worker.
        tid: I32 null,
        /// Name of that thread.
        comm: Str(Name) null,
        /// CPU on which it completed; null if not observed.
        cpu: I32 null,
        /// File of the first bio, in table files; null if no recorded task has used the file, or
        /// there is none.
        file_id: I64 null,
        /// Its path.
        path: Str(Path) null,
        /// Byte in the file of the first bio; null for direct I/O, where the call has the offset,
        /// and for I/O without a file.
        file_offset: I64 null,
        /// Requests in the device when this one was issued, including this one; counts only
        /// requests that were issued since the start of the recording.
        queue_depth: I64 null,
        /// Number of its bios; null if the end was not observed and it had several.
        bios: I32 null,
        /// Number of times that the driver returned it and the block layer issued it again.
        requeues: I32 set,
        /// Column origin of its only bio. The following columns and the columns of the request
        /// contain the rest of that bio. Null if the request has no bio, or if the files of table
        /// bios contain its bios.
        bio_origin: Str(Words) null hidden,
        /// Column submit_rid of that bio if it is not rid; 0 for null.
        bio_submit_rid: I64 null hidden,
        /// Column cause_pid of that bio if it is not pid; 0 for null.
        bio_cause_pid: I32 null hidden,
        /// Column cause_tid of that bio if it is not tid; 0 for null.
        bio_cause_tid: I32 null hidden,
    }

    /// One row per bio, the unit in which a file system submits I/O. One block request may contain
    /// several bios (merged), and one bio may need several requests (split). So this table links
    /// requests of programs and block requests, many to many. The files of this table lack the bios
    /// that are alone in their request and as large as it: columns of table block contain them.
    BIOS bios BioRows BioRow key [] {
        /// The block request, in table block.
        block_id: I64 set,
        /// Request of a program that caused it: the one that dirtied the written pages, whose
        /// change a journal commits, or that reads. Null if it is unknown or not recorded. If
        /// several dirtied the same file, the last one.
        rid: I64 null,
        /// Request during which it was submitted, such as an fsync that writes back pages dirtied
        /// by others; null for kernel workers.
        submit_rid: I64 null,
        /// When it was submitted, CLOCK_MONOTONIC nanoseconds; null if not observed.
        ts_ns: I64 null,
        /// First sector on the device, in sectors of 512 bytes.
        sector: I64 set,
        /// Size in bytes.
        bytes: I64 set,
        /// call: the task's own I/O, direct or metadata. read: into the page cache. readahead: into
        /// the page cache, beyond the requested range. writeback: dirty pages. journal: of the file
        /// system. other: unknown.
        origin: Str(Words) set,
        /// Process that submitted it.
        pid: I32 null,
        /// Thread that submitted it.
        tid: I32 null,
        /// Name of that thread.
        comm: Str(Name) null,
        /// Process of the request rid.
        cause_pid: I32 null,
        /// Thread of the request rid.
        cause_tid: I32 null,
        /// Its file, in table files.
        file_id: I64 null,
        /// Path of the file.
        path: Str(Path) null,
        /// Byte in the file; null for direct I/O, where the call has the offset.
        file_offset: I64 null,
    }

    /// One row per period in which a recorded thread was off the CPU, in requests and outside of
    /// them. A thread runs between its rows.
    WAITS waits WaitRows WaitRow key [] {
        /// The request; null outside of requests, and if the request is not recorded itself
        /// (filters, faults on memory without a file). With `--rows tail`, periods outside of
        /// requests have no rows.
        rid: I64 null,
        /// When the thread left the CPU, CLOCK_MONOTONIC nanoseconds; when it was taken in, if that
        /// is later.
        ts_ns: I64 set,
        /// Until it ran again, or until the recording ended, nanoseconds; null if the kernel ran no
        /// programs at that moment.
        dur_ns: I64 null,
        /// Process (thread group) id.
        pid: I32 set,
        /// Thread id.
        tid: I32 set,
        /// Name of the thread.
        comm: Str(Name) null,
        /// CPU on which it continued; null if not observed.
        cpu: I32 null,
        /// State of the thread. io: it waited for I/O, by the kernel's accounting. uninterruptible:
        /// for something else that ends soon, such as a lock. interruptible: for an event.
        /// preempted: it could have run. stopped: by a signal or a debugger. other: another state
        /// of the kernel.
        state: Str(Words) set,
        /// The reason of the wait. cpu: it was preempted, or new. disk: a device. page_cache: a page
        /// that another thread had, or the limit of dirty pages. file_system: other work of a file
        /// system, such as a commit of its journal. lock: a lock of the kernel (Linux 5.19 and
        /// newer). file_lock: flock, fcntl. futex, socket, pipe, terminal, timer, poll, signal:
        /// by the call. event: eventfd, inotify, and similar files. child: a child process.
        /// ipc: a queue or semaphore of System V or POSIX.
        /// async_io: an operation of io_uring or AIO. page_fault: the page of a mapped file. swap:
        /// memory without a file. stopped. other.
        reason: Str(Words) set,
        /// Call in which it waited, recorded or not; null in no call, in calls that fathom does not
        /// know, and if it was preempted.
        in_syscall: Str(Words) null,
        /// When it was woken; null if not observed, or if it was preempted.
        woken_at_ns: I64 null less "woken_off_ns" [
            Term::plus("ts_ns"), Term::plus("dur_ns"), Term::minus("run_queue_ns")
        ],
        /// From then until it ran again, nanoseconds: other threads had the CPU.
        run_queue_ns: I64 null,
        /// Source of the wake-up: name of the thread, or the interrupt (softirq:BLOCK, irq:virtio0,
        /// timer).
        waker: Str(Name) null,
        /// Thread that woke it; null for interrupts.
        waker_tid: I32 null,
        /// The cause of the wake-up: thread, block_request, timer, network, signal, or interrupt; null
        /// if it had not ended, if it was preempted, and if not observed.
        cause: Str(Words) null,
        /// thread: its tid. block_request: ts_ns of its row in table block; the waker may be the worker
        /// of the kernel in which the file system finishes it. signal: tid of the sender, if a
        /// thread sent it. network: tid of the sender, if its socket has the other end on this host
        /// and it carried the data over itself. Null else, and if not observed.
        cause_id: I64 null,
        /// Address of the futex, of waits outside of requests.
        address: I64 null,
    }

    /// One row per interrupt that took the CPU during a request. Covers handlers only: the time
    /// between an interrupt and its handler is not visible.
    IRQS irqs IrqRows IrqRow key [] {
        /// The request; null as in waits.
        rid: I64 null,
        /// When the handler started, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// Until it ended, nanoseconds, including nested interrupts.
        dur_ns: I64 set,
        /// Process of the interrupted thread.
        pid: I32 set,
        /// The interrupted thread.
        tid: I32 set,
        /// Name of the thread.
        comm: Str(Name) null,
        /// CPU.
        cpu: I32 set,
        /// irq, softirq, timer, or call (an inter-processor interrupt).
        kind: Str(Words) set,
        /// Name of the device, or of the softirq.
        name: Str(Words) set,
    }

    /// Where the time of a request was spent: one row per visit of a layer, for requests with
    /// recorded events below the call. The whole duration of any other request belongs to its call;
    /// view all_slices also has a row for those. The self_ns of a request's rows add up to its
    /// dur_ns.
    SLICES slices SliceRows SliceRow key [] {
        /// The request.
        rid: I64 set,
        /// syscall (the call itself, including all kernel work without a hook of its own), vfs, fs,
        /// sched, block (waiting for the device, or submitting to it), device, irq, or pagecache (a
        /// page fault, or functions of the page cache).
        layer: Str(Words) set,
        /// Name of the call, function, device, or interrupt, or the reason for being off the CPU.
        name: Str(Words) set,
        /// When the visit started, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// Duration, nanoseconds.
        dur_ns: I64 set,
        /// The part of dur_ns that was not spent in deeper visits, nanoseconds.
        self_ns: I64 set less "nested_off_ns" [Term::plus("dur_ns")],
        /// 0 for the request itself, 1 for visits inside it, and so on.
        depth: I32 set,
    }

    /// One row per call of a library's function, recorded with `--library`, including calls that were
    /// still in progress when the recording or their thread ended.
    USER_CALLS user_calls UserCallRows UserCallRow key [] {
        /// Id of the library call, unique in the session.
        user_call: I64 set,
        /// When it began, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// Until it returned, nanoseconds, with the time that fathom's probes took; for a call that
        /// had not returned, its time so far. Null for a call that never returned, because of
        /// longjmp or an exception.
        dur_ns: I64 null,
        /// Process (thread group) id.
        pid: I32 set,
        /// Thread id.
        tid: I32 set,
        /// Name of the thread.
        comm: Str(Name) null,
        /// CPU on which it ended.
        cpu: I32 set,
        /// Class of the function, as --library takes it; other for functions that --library names.
        class: Str(Words) set,
        /// Name of the function.
        function: Str(Symbol) set,
        /// Path of the library, or of the program that contains the function.
        library: Str(Path) set,
        /// Return value; null for a call that has not returned, and for functions without one. Of a
        /// function that --library names, the register as a whole: of a number of 32 bits the upper
        /// half means nothing.
        ret: I64 null,
        /// Whether the return value says that it failed.
        failed: Bool set,
        /// Descriptor that it used or returned, or the descriptor of its FILE; null if it has none.
        fd: I32 null,
        /// File behind the descriptor, in table files; null if it has none, with --path, and with
        /// --detail raw.
        file_id: I64 null,
        /// The path that was passed, as passed; null if the function takes none.
        path_arg: Str(Path) null,
        /// Position in the file, of functions that take one.
        file_offset: I64 null,
        /// Bytes requested; null if the function takes no number of bytes.
        size: I64 null,
        /// Items requested, such as values of an MPI datatype; null if the function takes no number
        /// of items.
        items: I64 null,
        /// Bytes moved, as the function reports; null if it does not.
        bytes: I64 null,
        /// The innermost recorded library call that made this one; null if none did.
        parent: I64 null,
        /// Number of recorded library calls that it is in.
        depth: I32 set,
    }

    /// Library calls without a row of their own, because their function was called more often than
    /// `--library-budget` allows: one row per second, process and function. These counts, the rows of
    /// table user_calls and the lost calls (table losses) add up to all calls.
    USER_CALL_COUNTERS user_call_counters UserCallCounterRows UserCallCounterRow key [] {
        /// Start of the second, CLOCK_MONOTONIC nanoseconds: fathom read the counters then and at
        /// ended_at_ns.
        ts_ns: I64 set,
        /// End of the second, CLOCK_MONOTONIC nanoseconds.
        ended_at_ns: I64 set,
        /// Process, -1 if the kernel had no room to record it.
        pid: I32 set,
        /// Class of the function, as in table user_calls.
        class: Str(Words) set,
        /// Name of the function.
        function: Str(Symbol) set,
        /// Path of the library, as in table user_calls.
        library: Str(Path) set,
        /// Calls that began. Their times, results, bytes and system calls are not recorded.
        count: I64 set,
    }

    /// The call stack of each call, recorded with `--stacks`: one row per call.
    STACKS stacks StackRows StackRow key [] {
        /// The request; null if the record of the call was lost.
        rid: I64 null,
        /// When the stack was taken, CLOCK_MONOTONIC nanoseconds: right after the call.
        ts_ns: I64 set,
        /// Process (thread group) id.
        pid: I32 set,
        /// Thread id.
        tid: I32 set,
        /// Its functions, in table frames; null if they could not be determined, such as for a
        /// process that ended before the recorder examined it, or for code generated at run time.
        stack_id: I64 null,
    }

    /// One row per function on a stack: the innermost ones, as far as the first 1,024 bytes of the
    /// stack reach. Written at the end of the recording.
    FRAMES frames FrameRows FrameRow key ["stack_id", "frame"] {
        /// The stack.
        stack_id: I64 set,
        /// 0 is the function that made the call, usually in the C library; 1 is its caller, and so
        /// on.
        frame: I32 set,
        /// Path of the program or library that contains the function, as its process saw it; null
        /// for code without a file.
        object: Str(Path) null,
        /// Its build id, in hexadecimal digits.
        build_id: Str(Symbol) null,
        /// Byte in that file to which the function's call returns.
        file_offset: I64 null,
        /// Name of the function; null if the file does not contain it.
        function: Str(Symbol) null,
        /// The same as file_offset, from the start of the function.
        function_offset: I64 null,
        /// Source file; null without debug information.
        source: Str(Path) null,
        /// Line in the source file.
        line: I32 null,
        /// Whether the function was inlined: the compiler made it part of the next one.
        inlined: Bool set,
    }

    /// Increments of perf counters during a request, recorded with `--counters`: one row per call
    /// and one per page fault of table faults that is outside of calls; none for operations of
    /// io_uring and AIO, and for calls that had not ended or started before the recording. Kernel
    /// and program both count. Work of other tasks while the request was off the CPU is excluded;
    /// interrupts during the request are included. A column is null if its counter was not
    /// selected, if the machine does not have it, and if it was multiplexed during a part of the
    /// request.
    PERF_COUNTERS perf_counters PerfCounterRows PerfCounterRow key [] {
        /// The request; null if its own record could not be read.
        rid: I64 null,
        /// When it began, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// Thread id.
        tid: I32 set,
        /// CPU cycles.
        cycles: I64 null,
        /// Instructions executed.
        instructions: I64 null,
        /// Cache accesses, usually of the last level.
        cache_references: I64 null,
        /// Cache accesses that missed.
        cache_misses: I64 null,
        /// Mispredicted branches.
        branch_misses: I64 null,
        /// Time on a CPU, nanoseconds.
        task_clock_ns: I64 null,
        /// Page faults, including those on memory without a file.
        page_faults: I64 null,
        /// Number of times that it left the CPU and came back.
        context_switches: I64 null,
        /// Number of times that it came back to another CPU.
        cpu_migrations: I64 null,
    }

    /// One row per file: device, inode, and generation. A recycled inode is a new file.
    FILES files FileRows FileRow key ["file_id"] {
        /// Id of the file in this session.
        file_id: I64 set,
        /// Device number, encoded as st_dev of stat(2); null if an imported log does not contain
        /// it.
        dev: I64 null,
        /// Inode number; null if an imported log does not contain it.
        ino: I64 null,
        /// Generation of the inode; null if the file was never seen open.
        generation: I64 null,
        /// dev|ino|first_seen_at_ns; null if an imported log does not contain it.
        file_tag: Str(Words) null,
        /// Absolute path; the latest known one.
        path: Str(Path) null,
        /// The path's bytes, if they are not valid UTF-8.
        path_raw: Blob(Path) null,
        /// regular, directory, symlink, block, char, fifo, socket, anonymous, or unknown.
        file_type: Str(Words) set,
        /// Type of the file system (ext4, tmpfs, ...).
        fs_type: Str(Words) null,
        /// Size in bytes when first seen open.
        size: I64 null,
        /// When the file was first seen, CLOCK_MONOTONIC nanoseconds.
        first_seen_at_ns: I64 set,
        /// False if the path is cut or was never seen.
        path_complete: Bool set,
        /// Mount namespace in which the file was last opened and in which path is valid: the inode
        /// number of /proc/PID/ns/mnt. Null if it was never seen open or is on no mount (pipes,
        /// memfd).
        mount_namespace: I64 null,
        /// Path of the file in the recorder's namespace, if mount_namespace is another one (a
        /// container) and one of the recorder's mounts contains it.
        host_path: Str(Path) null,
    }

    /// One row per end of a connection that a recorded thread used: a socket, or a pipe, whose two
    /// ends are one file. Recorded with class socket (`--syscalls socket`) or with `all`. A row is
    /// written again when it changes; the last one counts.
    FLOWS flows FlowRows FlowRow key ["file_id"] {
        /// The file of this end, in table files.
        file_id: I64 set,
        /// tcp, udp, unix, unix_datagram, unix_seqpacket, netlink, pipe, or the numbers of the
        /// socket: family/type/protocol. Null if no call was recorded that says it: of a socket
        /// that was made before the recording, until it is connected or shut down.
        protocol: Str(Words) null,
        /// Inode of the network namespace; null for a pipe, and if protocol is null.
        net_ns: I64 null,
        /// IP address of this end, as the kernel had it at the last connect, accept, or shutdown.
        local_address: Str(Address) null,
        /// Its port.
        local_port: I32 null,
        /// IP address of the other end; null if it is not connected.
        remote_address: Str(Address) null,
        /// Its port.
        remote_port: I32 null,
        /// When the call ended that made it: socket, accept, socketpair, pipe. CLOCK_MONOTONIC
        /// nanoseconds; null if that was not recorded.
        opened_at_ns: I64 null,
        /// End of the last recorded close of a descriptor of it, if no other call on it followed;
        /// null otherwise. Descriptors that the end of a process closes are not seen.
        closed_at_ns: I64 null,
        /// Bytes that the stored calls wrote into it.
        bytes_sent: I64 set,
        /// Bytes that the stored calls read from it, once more where they only looked (MSG_PEEK).
        bytes_received: I64 set,
        /// Of TCP: segments that the kernel had sent again by the time of a recorded shutdown; null
        /// without one.
        retransmits: I64 null,
        /// The file of the other end if a recorded thread has used it: of a Unix socket; of a pipe
        /// the file itself; of TCP by the pair of addresses in one network namespace.
        peer_file_id: I64 null,
    }

    /// One row per path of a file: renames and hard links add paths, and so does a use of the file
    /// after its name was removed.
    FILE_PATHS file_paths FilePathRows FilePathRow key [] {
        /// The file, in table files.
        file_id: I64 set,
        /// When the path was first seen, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// Absolute path.
        path: Str(Path) set,
        /// False if the path is cut.
        path_complete: Bool set,
        /// Whether the name was already removed when it was seen.
        deleted: Bool set,
        /// Mount namespace in which the path is valid; null if it is on no mount.
        mount_namespace: I64 null,
    }

    /// One row per thread.
    PROCESSES processes ProcessRows ProcessRow key ["tid", "started_at_ns"] {
        /// Process (thread group) id in the host's namespace; null if an imported log does not
        /// contain it.
        pid: I32 null,
        /// Thread id in the host's namespace.
        tid: I32 set,
        /// Parent process.
        ppid: I32 null,
        /// Name; the latest one.
        comm: Str(Name) null,
        /// Path of the executable.
        exe: Str(Path) null,
        /// Command line, arguments quoted for a shell.
        cmdline: Str(Command) null,
        /// Path of the cgroup (v2).
        cgroup: Str(Path) null,
        /// Id of the container, from the cgroup's name.
        container_id: Str(Host) null,
        /// Real user id.
        uid: I64 null,
        /// Mount namespace: the inode number of /proc/PID/ns/mnt. It differs between containers and
        /// host.
        mount_namespace: I64 null,
        /// When the thread started, CLOCK_MONOTONIC nanoseconds; in an imported log, its first
        /// appearance.
        started_at_ns: I64 set,
        /// When it ended; null if it had not ended.
        ended_at_ns: I64 null,
        /// Exit status, or 128 and the signal that ended it.
        exit_status: I32 null,
    }

    /// One row per container of Kubernetes that ran on the host during the recording, as the kubelet
    /// names it in `/var/log/containers`; processes.container_id has its id. A recording that keeps
    /// its latest rows only writes a row again from time to time: use DISTINCT.
    CONTAINERS containers ContainerRows ContainerRow key [] {
        /// Id of the container.
        container_id: Str(Host) set,
        /// Namespace of its pod.
        namespace: Str(Host) set,
        /// Name of its pod.
        pod: Str(Host) set,
        /// UID of its pod; null if the kubelet's link does not contain it.
        pod_uid: Str(Host) null,
        /// Name of the container in its pod.
        name: Str(Host) set,
    }

    /// One row per mounted persistent volume of Kubernetes whose claim is known (`record
    /// --kubernetes`), as the API of Kubernetes names the claim. View by_volume has the calls on its
    /// files.
    VOLUME_CLAIMS volume_claims VolumeClaimRows VolumeClaimRow key [] {
        /// Its directory on the host: `/var/lib/kubelet/pods/UID/volumes/PLUGIN/NAME`, where NAME is
        /// the name of the PersistentVolume.
        directory: Str(Path) set,
        /// Namespace of the claim.
        namespace: Str(Host) set,
        /// Name of the PersistentVolumeClaim.
        claim: Str(Host) set,
    }

    /// One row per span of an application: an operation, such as an HTTP request or a statement to a
    /// database. `record --spans` finds requests in the bytes on sockets; `fathom import --into` adds
    /// spans that an application traced itself to a closed session. View span_calls has the calls in
    /// them, view by_span_name their sums.
    SPANS spans SpanRows SpanRow key ["trace_id", "span_id"] {
        /// Id of the trace, 32 hexadecimal digits: spans of one trace belong to one request, also in
        /// different processes.
        trace_id: Str(Words) set,
        /// Id of the span, 16 hexadecimal digits, unique in its trace.
        span_id: Str(Words) set,
        /// Id of the span that caused it, in the same trace; null for the first one of a trace. The
        /// parent may be missing in the session.
        parent_span_id: Str(Words) null,
        /// When it began, CLOCK_MONOTONIC nanoseconds; of a span that is known only from the contexts of
        /// threads, when the first recorded call was made in it, which may be later. Of a recorded one: when the call returned that
        /// moved its first byte; between static probes: when the thread came by the first. Of an imported one: the application's wall clock, converted by the
        /// clocks in session.json.
        ts_ns: I64 set,
        /// Its duration, nanoseconds; null of a span that is known only from the contexts of threads.
        dur_ns: I64 null,
        /// Process; of a span that is known from the contexts of threads the process in which it was first
        /// seen. Of an imported span as the application says it (process.pid): in a container it
        /// may be an id of the container. Null if it says nothing.
        pid: I32 null,
        /// Thread. Of a recorded span the one that received the request and sent the response, or that
        /// came by both static probes; null if those are two. Of an imported one as the application says it (thread.id), if its
        /// process had this thread all the time in the recording; null otherwise, because some
        /// languages number threads themselves.
        tid: I32 null,
        /// Name of the service (service.name); of a recorded span the name of the process, also of one
        /// that is known from the contexts of threads if its process publishes no service.name.
        service: Str(Name) null,
        /// Name of the operation. Between static probes the digest of a statement, or the kind of the
        /// spans and the text that the first probe passes. Of a span that is known only from the contexts
        /// of threads the route of its request (http.route), with the method if that is published;
        /// otherwise null.
        name: Str(Query) null,
        /// internal, server, client, producer, consumer, or unspecified.
        kind: Str(Words) set,
        /// ok, error, or unset, which is the usual status of a span without an error.
        status: Str(Words) set,
        /// Text that belongs to the status, mostly of an error.
        status_message: Str(Attributes) null,
        /// Attributes of the span, a JSON object; at most 64 KiB of them.
        attributes: Str(Attributes) null,
        /// The origin of the row: recorded (`--spans`), usdt (`--usdt`), context (`--otel-context`), or
        /// otlp. An imported span takes the place of the row that a context made of it.
        source: Str(Words) set,
    }

    /// One row per change of the span that is active in a thread (`--otel-context`): a recorded call was
    /// made in another one than the call of the thread before it. It holds for the calls of the thread
    /// from there to its next row.
    SPAN_CONTEXTS span_contexts SpanContextRows SpanContextRow key [] {
        /// When that call was entered, CLOCK_MONOTONIC nanoseconds; of the last row of a thread, when it
        /// ended.
        ts_ns: I64 set,
        /// Process.
        pid: I32 set,
        /// Thread.
        tid: I32 set,
        /// span; none: no span was active; unreadable: the memory that says it was not there or not in
        /// memory; unknown: where the process has its contexts was not known yet, or the thread ended.
        state: Str(Words) set,
        /// Trace of the span, as in spans; null without one.
        trace_id: Str(Words) null,
        /// The span; null likewise.
        span_id: Str(Words) null,
    }

    /// One row per set of calls that were seen but are not stored in syscalls; their counts, bytes,
    /// and latencies are still exact. The counts of all rows and the rows of syscalls add up to the
    /// calls that the kernel saw. Rows of layer pagecache do the same for tables faults and
    /// writeback.
    LOSSES losses LossRows LossRow key ["stage", "cpu", "syscall", "pid", "file_id"] {
        /// Where they were lost: ring (kernel buffer full), scratch (no scratch memory in the
        /// kernel), decode (damaged record), or write (disk full).
        stage: Str(Words) set,
        /// CPU, -1 if unknown.
        cpu: I32 set,
        /// Name of the call; page_fault for rows of table faults, writeback for rows of table
        /// writeback; block_request, wait, interrupt, stack, user_call, perf_counters, fs_span, usdt, and
        /// tls for rows of tables block, waits, irqs, stacks, user_calls, and perf_counters, for slices of
        /// file systems, for records of static probes, and for calls of TLS libraries (`--spans`).
        syscall: Str(Words) set,
        /// Layer of the event: user, syscall, pagecache, block, sched, irq, or fs; cpu for
        /// perf_counters, slices for rows of table slices that could not be written because the
        /// disk was full.
        layer: Str(Words) set,
        /// Calls lost.
        count: I64 set,
        /// Bytes moved by them.
        bytes: I64 set,
        /// When the first was lost, CLOCK_MONOTONIC nanoseconds.
        first_at_ns: I64 set,
        /// When the last was lost, CLOCK_MONOTONIC nanoseconds.
        last_at_ns: I64 set,
        /// Process, -1 if the kernel had no room to record it.
        pid: I32 set,
        /// File, -1 if there was none or the kernel had no room to record it.
        file_id: I64 set,
        /// Calls that failed.
        errors: I64 set,
        /// Total duration, nanoseconds.
        dur_ns: I64 set,
        /// Longest duration, nanoseconds.
        max_dur_ns: I64 set,
        /// Durations: entry b counts those from 2^b to below 2^(b+1) ns.
        hist: ListI64 set,
    }

    /// The machine as a whole, recorded with layer sched: one row per second, and one for the rest
    /// at the end. Times are of all processors together, in ticks of the kernel (10 ms).
    MACHINE machine MachineRows MachineRow key [] {
        /// Start of the second, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// End of the second, CLOCK_MONOTONIC nanoseconds.
        ended_at_ns: I64 set,
        /// Processors ran programs, nanoseconds.
        user_ns: I64 set,
        /// Processors ran the kernel for programs, nanoseconds.
        system_ns: I64 set,
        /// Processors served interrupts, nanoseconds.
        interrupt_ns: I64 set,
        /// Processors had nothing to do while threads that ran there waited for a device,
        /// nanoseconds. The kernel's estimate: low where other threads ran.
        iowait_ns: I64 set,
        /// Processors had nothing else to do, nanoseconds.
        idle_ns: I64 set,
        /// The hypervisor ran other machines while processors of this one had work, nanoseconds.
        steal_ns: I64 set,
        /// Threads that ran or wanted a processor at the end of the second; null if not known.
        running_threads: I64 null,
        /// Threads that waited for a device at the end of the second; null if not known.
        blocked_threads: I64 null,
        /// Time in which some thread wanted a processor and had none, nanoseconds (pressure stall
        /// information); null if the kernel does not keep it.
        cpu_stalled_ns: I64 null,
        /// Time in which some thread waited for memory, in the same way.
        memory_stalled_ns: I64 null,
        /// Time in which some thread waited for I/O, in the same way.
        io_stalled_ns: I64 null,
        /// Memory that programs could have at the end of the second; null if not known.
        available_bytes: I64 null,
        /// Memory of the page cache at the end of the second; null if not known.
        cached_bytes: I64 null,
        /// The part of it that is to be written; null if not known.
        dirty_bytes: I64 null,
        /// The part of it that is being written; null if not known.
        writeback_bytes: I64 null,
        /// Memory that is swapped out at the end of the second; null if not known.
        swapped_bytes: I64 null,
    }

    /// Calls without a row of their own, with --rows tail, --budget and --detail counters: one
    /// row per second, process, call and file (with --detail counters only if --count-files is
    /// given). These counts and the rows of table syscalls add up to what the kernel saw.
    COUNTERS counters CounterRows CounterRow key [] {
        /// Start of the second, CLOCK_MONOTONIC nanoseconds: fathom read the kernel's counters then
        /// and at ended_at_ns.
        ts_ns: I64 set,
        /// End of the second, CLOCK_MONOTONIC nanoseconds.
        ended_at_ns: I64 set,
        /// Name of the call or operation, as in table syscalls.
        syscall: Str(Words) set,
        /// Process, -1 if the kernel had no room to record it.
        pid: I32 set,
        /// File, in table files; null without --count-files, if there was none, or if the kernel
        /// had no room to record it.
        file_id: I64 null,
        /// Calls that returned.
        count: I64 set,
        /// Bytes moved by them.
        bytes: I64 set,
        /// Calls that failed.
        errors: I64 set,
        /// Total duration, nanoseconds.
        dur_ns: I64 set,
        /// Longest duration in the period, nanoseconds. Where process and file are not known, because
        /// the kernel had no more room: since the start of the recording.
        max_dur_ns: I64 set,
        /// Durations: entry b counts those from 2^b to below 2^(b+1) ns.
        hist: ListI64 set,
    }
}

/// The table `name`, if there is one.
pub fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().copied().find(|t| t.name == name)
}

#[cfg(test)]
mod tests;
