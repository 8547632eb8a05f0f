//! The tables of a session: the one place that defines their columns. Schema
//! pages, Parquet schemas and SQL views follow from it.

use crate::batch::{Batch, ColumnData, Null};
use crate::strings::StringTable;
pub use crate::table::{Column, ColumnType, Table};

#[macro_use]
mod define;
use define::{MAX_RESERVED, value};

/// Version of the tables and of the layout of a session. A reader refuses a
/// session with another one.
pub const SCHEMA_VERSION: u32 = 3;

tables! {
    /// One row a completed storage call or operation of io_uring or Linux AIO, and
    /// one a call or operation that was still running when the recording or its
    /// thread ended. An operation that completes several times (multishot) has a
    /// row for each completion; each begins where the one before ended. Rows lie in the
    /// order in which they ended, but in parts that were merged those of a thread and call
    /// stand together within a row group: ask for an order with ORDER BY.
    SYSCALLS syscalls SyscallRows SyscallRow key [] {
        /// Id of the request, unique in the session: a number from 1, in the order
        /// in which requests ended or something below them was first seen.
        rid: I64 set,
        /// When the call was entered or the operation submitted: CLOCK_MONOTONIC
        /// nanoseconds.
        ts_ns: I64 set,
        /// From entry to exit, or from submission to completion, nanoseconds; for
        /// a call that had not ended, the time that it had taken so far. Null when
        /// an imported log does not tell.
        dur_ns: I64 null,
        /// Process (thread group) id, as the host counts; null when an imported log
        /// does not tell.
        pid: I32 null,
        /// Thread id, as the host counts; of an operation the thread that
        /// submitted it, which with SQPOLL is the kernel's thread of the ring.
        tid: I32 set,
        /// Name of the thread when the call ended.
        comm: Str null,
        /// Processor on which the call ended; null when an imported log does not
        /// tell.
        cpu: I32 null,
        /// Name of the call, as in strace; of an operation as in the kernel's
        /// headers: IORING_OP_READV, IOCB_CMD_PREAD.
        syscall: Str set,
        /// data, metadata, directory, xattr, memory or async.
        class: Str set,
        /// What the call returned, negative errno for an error; null for a
        /// call that had not ended.
        ret: I64 null,
        /// Name of the error, null when there was none.
        errno: Str null,
        /// Descriptor that the call worked on, as passed; with FIXED_FILE in
        /// op_flags the index of a registered file.
        fd: I32 null,
        /// File that the call worked on, in table files.
        file_id: I64 null,
        /// Byte in the file where the I/O took place; null when the call has none, or
        /// when others used the same position so that it is not known.
        file_offset: I64 null,
        /// Bytes asked for, as the kernel takes them: below 0 where it takes a sign.
        /// Null, and kept in args, when it is 2^63 or more.
        size: I64 null,
        /// Bytes moved.
        bytes: I64 null,
        /// Flags, decoded as in strace.
        flags: Str null,
        /// First path (or text of a symbolic link) as passed. Null with a note in args
        /// when it was a null pointer (path_arg=NULL) or could not be read
        /// (path_arg=partial); with that note, too, when it is cut after 4,095 bytes.
        path_arg: Str null,
        /// Second path as passed.
        path_arg2: Str null,
        /// Absolute path of the file at the time of the call: the file's own
        /// when the call has an open file, else path_arg made absolute. Null when
        /// there is no path: a null, empty, unreadable or cut path_arg.
        path: Str null,
        /// The same for the second path or file.
        path2: Str null,
        /// XXH64 with seed 0 of the first content_bytes of the bytes moved
        /// (recorded with --content hash), its 64 bits as a signed number;
        /// null when nothing was moved or the memory could not be read.
        hash: I64 null,
        /// Further arguments, name=value, decoded as in strace: also structs, the number
        /// of segments (iovcnt), what stat and statfs return, what does not fit its
        /// column, and null pointers in the place of a position (offset_ptr=NULL). A
        /// descriptor before a path has behind it what it stood for at the time of the
        /// call, as by strace -y: dirfd=3</etc>, dirfd=AT_FDCWD</home> with the working
        /// directory.
        args: Str null,
        /// By which interface: syscall, io_uring or aio (an iocb of io_submit).
        api: Str set,
        /// Of an operation the flags with which it was submitted
        /// (FIXED_FILE, DRAIN, LINK, HARDLINK, ASYNC, BUFFER_SELECT, CQE_SKIP: the
        /// kernel's IOSQE_), and what became of it: SQPOLL, submitted by the
        /// kernel's thread of the ring; WORKER, carried out by a worker thread; DIRECT,
        /// opened as a registered file; MORE, further completions follow;
        /// END_APPROXIMATE, the end is when the completion was found, the operation itself
        /// ended before; COMPLETION_UNSEEN, it ended, but how and when was not seen. 0: none.
        /// Of a call STARTED_BEFORE_TRACE when a thread waited in it as the recording took
        /// that thread in: ts_ns is then, dur_ns counts from then; else null.
        op_flags: Str null,
        /// What the program passed with an operation to know it again, null for a
        /// call: user_data of io_uring, aio_data of AIO, as a signed number.
        user_data: I64 null,
        /// Bytes that hash or content covers: fewer than bytes when the call
        /// moved more than --content-max.
        content_bytes: I64 null,
        /// The first bytes moved (recorded with --content plain).
        content: Blob null,
        /// Pages of the file that it read through the page cache; null when it looked none
        /// up, or layer pagecache was not recorded. View pagecache has these columns alone.
        cache_pages: I32 null,
        /// Of which were not there and had to be read; null like cache_pages.
        cache_misses: I32 null,
        /// Pages that were read along, ahead of what was asked for. Null, as are those
        /// that follow, when the call did nothing in the page cache.
        readahead_pages: I32 null,
        /// Pages that were added without a lookup, by writes.
        added_pages: I32 null,
        /// Folios (a page, or several that are kept together) that became dirty.
        dirtied: I32 null,
        /// Changes to metadata that joined a transaction of jbd2 (ext4).
        journal_handles: I32 null,
    }

    /// One row a page fault on a mapped file: the first touch of a page, or the
    /// first write to a page that was read before. Touches of pages that are
    /// mapped already take no fault and have no row; a fault may map neighbors
    /// along (around_offset), which then take none. Faults on memory without a file
    /// are no I/O and not in here.
    FAULTS faults FaultRows FaultRow key [] {
        /// Id of the request, unique in the session over all tables.
        rid: I64 set,
        /// When the fault was taken, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// Until the kernel had dealt with it, nanoseconds, waiting and trying
        /// again included; null when beginning or end was not seen.
        dur_ns: I64 null,
        /// Process (thread group) id, as the host counts.
        pid: I32 set,
        /// Thread id, as the host counts.
        tid: I32 set,
        /// Name of the thread.
        comm: Str null,
        /// Processor on which the fault ended.
        cpu: I32 set,
        /// read, write or exec (a fetch of instructions); null when not seen.
        access: Str null,
        /// minor: the page was in memory. major: it had to be read, or waited
        /// for. failed: SIGBUS, as beyond the end of the file or when reading
        /// failed. Null when the end was not seen.
        kind: Str null,
        /// absent: the page was not mapped. protected: it was, but not for this
        /// access, as at the first write after a read. Null when not seen.
        cause: Str null,
        /// user: the program touched the page. kernel: a call did, in the
        /// program's name (read into mapped memory). Null when not seen.
        origin: Str null,
        /// shared or private. A write to a private mapping copies the page and
        /// does not reach the file.
        mapping: Str set,
        /// Address that was touched.
        address: I64 set,
        /// File that is mapped there, in table files.
        file_id: I64 null,
        /// Its path at the time of the fault.
        path: Str null,
        /// Byte in the file that the address stands for, not rounded to a page.
        file_offset: I64 set,
        /// Where the range of the file begins whose pages were mapped along as far
        /// as they were in the page cache (fault-around); null when there was none
        /// or the kernel does not tell.
        around_offset: I64 null,
        /// Bytes of that range; the page of the fault may be one of them.
        around_bytes: I64 null,
        /// Pages that it added to the page cache. Null, as are those that follow, when it
        /// did nothing there, or in the course of a call, whose row has them.
        added_pages: I32 null,
        /// Folios that became dirty; 65535: as many or more.
        dirtied: I32 null,
        /// Changes to metadata that joined a transaction of jbd2 (ext4); 65535: as many or
        /// more.
        journal_handles: I32 null,
    }

    /// One row a request in which a file system handed dirty pages of a file to
    /// the block layer. Files that recorded tasks have taken faults on in a shared
    /// mapping that may be written, from the first such fault on; pages that were
    /// made dirty by write(2) or by others are among them. File systems without a
    /// device of their own (tmpfs, network) have none.
    WRITEBACK writeback WritebackRows WritebackRow key [] {
        /// Id, unique in the session over all tables.
        rid: I64 set,
        /// When the request was submitted, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// Process that submitted it: a worker of the kernel's, or a task that
        /// asked for it.
        pid: I32 set,
        /// Thread that submitted it.
        tid: I32 set,
        /// Name of that thread.
        comm: Str null,
        /// Processor.
        cpu: I32 set,
        /// Call of a recorded task in which it was submitted: msync, fsync, ...;
        /// null when it was a worker or a task that is not recorded.
        syscall: Str null,
        /// The file, in table files.
        file_id: I64 null,
        /// Its path.
        path: Str null,
        /// Byte in the file where the first page begins.
        file_offset: I64 set,
        /// Bytes of all pages of the request.
        bytes: I64 set,
        /// Whether the pages lie one behind the other in the file; when not,
        /// the bytes are not those from file_offset on.
        contiguous: Bool set,
    }

    /// One row per request to a device, whichever process made it: requests of other
    /// processes fill the queues of a device, too. Requests in flight when the
    /// recording began lack their earlier times. Requests whose end was not seen have
    /// neither completed_at_ns, dur_ns, error nor cpu: they were in flight when the recording
    /// ended, or the kernel ran no programs at that moment. Devices without requests of
    /// their own (dm, md, zram) are seen through the devices below them.
    BLOCK block BlockRows BlockRow key [] {
        /// Id of this row, unique in the session; table bios refers to it.
        block_id: I64 set,
        /// Request that caused the first of its bios; null when none that is recorded
        /// did, or nobody can tell. All causes are in table bios.
        rid: I64 null,
        /// When the first time below was taken, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// From then until it was completed, nanoseconds; null when that was not seen.
        dur_ns: I64 null,
        /// Name of the device: sda, nvme0n1, loop0. Empty for a queue without a disk
        /// (administration of an NVMe controller).
        device: Str set,
        /// Where it begins on the device, sectors of 512 bytes; null for a flush and for
        /// commands of a driver.
        sector: I64 null,
        /// Bytes that were moved; those of the whole request when its end was not seen.
        bytes: I64 set,
        /// read, write, flush, discard, secure_erase, zone_append, write_zeroes,
        /// driver_in and driver_out (commands that a driver or a program passes through
        /// to the device: what they mean is up to the device), or the kernel's number.
        op: Str set,
        /// SYNC, META, PRIO, FUA, PREFLUSH, RAHEAD, BACKGROUND, NOWAIT, IDLE, joined
        /// by |; null when there are none.
        flags: Str null,
        /// The kernel's blk_status_t; 0 when it succeeded, null when its end was not seen.
        error: I32 null,
        /// When the first of its bios was submitted by the file system.
        queued_at_ns: I64 null,
        /// When the block layer had a request for it: waiting before that is for a
        /// free request, or for a limit.
        started_at_ns: I64 null,
        /// When it was put into the queue of the I/O scheduler; null when it went past.
        inserted_at_ns: I64 null,
        /// When it was given to the device's driver.
        issued_at_ns: I64 null,
        /// When the device had completed it; null when that was not seen.
        completed_at_ns: I64 null,
        /// Process that submitted the first bio.
        pid: I32 null,
        /// Thread that submitted the first bio: the program's, or a worker of the
        /// kernel's.
        tid: I32 null,
        /// Name of that thread.
        comm: Str null,
        /// Processor on which it was completed; null when that was not seen.
        cpu: I32 null,
        /// File of the first bio, in table files; null when no recorded task has used
        /// that file, or there is none.
        file_id: I64 null,
        /// Its path.
        path: Str null,
        /// Byte in the file of the first bio; null for direct I/O, whose call has it,
        /// and for what belongs to no file.
        file_offset: I64 null,
        /// Requests that the device had when it got this one, which counts; only
        /// those that were issued since the recording began.
        queue_depth: I64 null,
        /// Bios that it was made of; null when its end was not seen and it had several.
        bios: I32 null,
        /// Times that it was taken back from the device and issued again.
        requeues: I32 set,
    }

    /// One row a bio: what a file system submitted at once. A request to a device
    /// may have several (merged), and a bio several requests (split). So this table
    /// links requests of programs and of devices, many to many.
    BIOS bios BioRows BioRow key [] {
        /// The request to the device, in table block.
        block_id: I64 set,
        /// Request of a program that caused it: who dirtied the pages that are written
        /// back, whose change a journal commits, who reads. Null when nobody can tell,
        /// or it is not recorded. The last one when several dirtied the same file.
        rid: I64 null,
        /// Request in whose course it was submitted: an fsync that writes back what
        /// others dirtied; null for workers of the kernel's.
        submit_rid: I64 null,
        /// When it was submitted, CLOCK_MONOTONIC nanoseconds; null when not seen.
        ts_ns: I64 null,
        /// Where it begins on the device, sectors of 512 bytes.
        sector: I64 set,
        /// Its bytes.
        bytes: I64 set,
        /// call: the task's own I/O, direct or metadata. read: into the page cache.
        /// readahead: the same, ahead of or along with what was asked for. writeback:
        /// dirty pages. journal: of the file system. other: nothing of these could
        /// be told.
        origin: Str set,
        /// Process that submitted it.
        pid: I32 null,
        /// Thread that submitted it.
        tid: I32 null,
        /// Name of that thread.
        comm: Str null,
        /// Process of rid.
        cause_pid: I32 null,
        /// Thread of rid.
        cause_tid: I32 null,
        /// Its file, in table files.
        file_id: I64 null,
        /// Path of the file.
        path: Str null,
        /// Byte in the file; null for direct I/O, whose call has it.
        file_offset: I64 null,
    }

    /// One row a time that a thread was off the CPU in the course of a request.
    WAITS waits WaitRows WaitRow key [] {
        /// The request; null when it is not recorded itself (filters, faults on memory
        /// without a file).
        rid: I64 null,
        /// When it left the CPU, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// Until it was back, nanoseconds; null when the kernel ran no programs as it came
        /// back.
        dur_ns: I64 null,
        /// Process (thread group) id.
        pid: I32 set,
        /// Thread id.
        tid: I32 set,
        /// Name of the thread.
        comm: Str null,
        /// Processor on which it went on; null when that was not seen.
        cpu: I32 null,
        /// io: for I/O, as the kernel accounts it. uninterruptible: for something
        /// else that ends soon, as locks. interruptible: for an event. preempted: it
        /// could have run. other: another state of the kernel's.
        reason: Str set,
        /// When it was woken; null when that was not seen, or it was preempted.
        woken_at_ns: I64 null,
        /// From then until it was on a CPU again, nanoseconds: others had the CPU.
        run_queue_ns: I64 null,
        /// Who woke it: name of the thread, or the interrupt (softirq:BLOCK,
        /// irq:virtio0, timer).
        waker: Str null,
        /// Thread that woke it; null for interrupts.
        waker_tid: I32 null,
    }

    /// One row an interrupt that took the CPU in the course of a request. Handlers only:
    /// the time between an interrupt and its handler is not seen.
    IRQS irqs IrqRows IrqRow key [] {
        /// The request; null as in waits.
        rid: I64 null,
        /// When the handler began, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// Until it ended, nanoseconds, interrupts of it included.
        dur_ns: I64 set,
        /// Process of the thread that was interrupted.
        pid: I32 set,
        /// The thread.
        tid: I32 set,
        /// Its name.
        comm: Str null,
        /// Processor.
        cpu: I32 set,
        /// irq, softirq, timer or call (another processor asked for something).
        kind: Str set,
        /// Name of the device, or of the softirq.
        name: Str set,
    }

    /// Where the time of a request went: one row a visit of a layer, for the requests in
    /// the course of which something below the call was seen. All time of any other
    /// request is its call's own; view all_slices has a row for those too. The
    /// self_ns of a request's rows add up to its dur_ns.
    SLICES slices SliceRows SliceRow key [] {
        /// The request.
        rid: I64 set,
        /// syscall (the call itself, with all of the kernel's work that has no hook of
        /// its own), vfs, fs, sched, block (waiting for the device, or submitting to it),
        /// device, irq, or pagecache (a page fault, or functions of the page cache).
        layer: Str set,
        /// Name of the call, of the function, of the device, of the interrupt; why it was
        /// off the CPU.
        name: Str set,
        /// When the visit began, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// How long it took, nanoseconds.
        dur_ns: I64 set,
        /// The part of dur_ns that was spent in this visit and in none that lies deeper,
        /// nanoseconds.
        self_ns: I64 set,
        /// 0 for the request itself, 1 for what lies in it, and so on.
        depth: I32 set,
    }

    /// From where in its program a call was made, with `--stacks`: one row a call.
    STACKS stacks StackRows StackRow key [] {
        /// The request; null when the record of the call found no room.
        rid: I64 null,
        /// When the stack was taken, CLOCK_MONOTONIC nanoseconds: right behind the call.
        ts_ns: I64 set,
        /// Process (thread group) id.
        pid: I32 set,
        /// Thread id.
        tid: I32 set,
        /// Its functions, in table frames; null when they could not be told, as of a process
        /// that had ended when the recorder looked at it first, or of code that is made
        /// while it runs.
        stack_id: I64 null,
    }

    /// One row a function on a stack: the innermost ones, as many as lie in the first
    /// 1,024 bytes of the stack. Written when the recording is over.
    FRAMES frames FrameRows FrameRow key ["stack_id", "frame"] {
        /// The stack.
        stack_id: I64 set,
        /// 0 is the function that made the call, mostly one of the C library; 1 the one that
        /// called it, and so on.
        frame: I32 set,
        /// Path of the program or library that the function is in, as its process saw it; null
        /// for code that is in no file.
        object: Str null,
        /// Its build id, in hexadecimal digits.
        build_id: Str null,
        /// Byte in that file to which the call that the function made returns.
        file_offset: I64 null,
        /// Name of the function; null when the file has none for it.
        function: Str null,
        /// The same as file_offset, from the function's beginning.
        function_offset: I64 null,
        /// File of the source; null without debug information.
        source: Str null,
        /// Line in it.
        line: I32 null,
        /// Whether the function has no code of its own: the compiler made it part of the next
        /// one.
        inlined: Bool set,
    }

    /// By how much counters of perf grew in the course of a request, with `--counters`: one
    /// row a call and one a page fault of table faults that lies in no call; none for
    /// operations of io_uring and AIO, and for calls that had not ended or began before the
    /// recording. Kernel and program both count. What others did while the request was off
    /// the CPU is not in it; what interrupts did that came meanwhile is. A column is null
    /// when its counter was not asked for, when the machine does not have it, and when the
    /// processor had it for others during a part of the request.
    PERF_COUNTERS perf_counters PerfCounterRows PerfCounterRow key [] {
        /// The request; null when its own record could not be read.
        rid: I64 null,
        /// When it began, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// Thread id.
        tid: I32 set,
        /// Cycles of the processor.
        cycles: I64 null,
        /// Instructions that were carried out.
        instructions: I64 null,
        /// Accesses to the processor's cache of the last level, mostly.
        cache_references: I64 null,
        /// Of which found nothing there.
        cache_misses: I64 null,
        /// Branches that the processor had predicted wrong.
        branch_misses: I64 null,
        /// Time on a CPU, nanoseconds.
        task_clock_ns: I64 null,
        /// Page faults, those on memory without a file too.
        page_faults: I64 null,
        /// Times that it left the CPU and came back.
        context_switches: I64 null,
        /// Times that it came back to another CPU.
        cpu_migrations: I64 null,
    }

    /// One row a file: device, inode and generation. A recycled inode is a new
    /// file.
    FILES files FileRows FileRow key ["file_id"] {
        /// Id of the file in this session.
        file_id: I64 set,
        /// Device number, encoded as st_dev of stat(2); null when an imported log
        /// does not tell.
        dev: I64 null,
        /// Inode number; null when an imported log does not tell.
        ino: I64 null,
        /// Generation of the inode; null when the file was never seen open.
        generation: I64 null,
        /// dev|ino|first_seen_at_ns; null when an imported log does not tell.
        file_tag: Str null,
        /// Absolute path, the latest known.
        path: Str null,
        /// The path's bytes, when they are not valid UTF-8.
        path_raw: Blob null,
        /// regular, directory, symlink, block, char, fifo, socket, anonymous
        /// or unknown.
        file_type: Str set,
        /// Type of the file system (ext4, tmpfs, ...).
        fs_type: Str null,
        /// Size in bytes when first seen open.
        size: I64 null,
        /// When the file was first seen, CLOCK_MONOTONIC nanoseconds.
        first_seen_at_ns: I64 set,
        /// False when the path is cut or was never seen.
        path_complete: Bool set,
        /// Mount namespace in which the file was last opened and in which path
        /// holds: the inode number of /proc/PID/ns/mnt. Null when it was never
        /// seen open or lies on no mount (pipes, memfd).
        mount_namespace: I64 null,
        /// Where the recorder finds the file, when mount_namespace is not its own (a
        /// container) and one of its mounts shows it.
        host_path: Str null,
    }

    /// One row a path that a file had: renames and hard links give it more, and so does
    /// a use of the file after its name was removed.
    FILE_PATHS file_paths FilePathRows FilePathRow key [] {
        /// The file, in table files.
        file_id: I64 set,
        /// When the path was first seen, CLOCK_MONOTONIC nanoseconds.
        ts_ns: I64 set,
        /// Absolute path.
        path: Str set,
        /// False when the path is cut.
        path_complete: Bool set,
        /// Whether the name was already removed when it was seen.
        deleted: Bool set,
        /// Mount namespace in which the path holds; null when it lies on no
        /// mount.
        mount_namespace: I64 null,
    }

    /// One row a thread.
    PROCESSES processes ProcessRows ProcessRow key ["tid", "started_at_ns"] {
        /// Process (thread group) id, as the host counts; null when an imported log
        /// does not tell.
        pid: I32 null,
        /// Thread id, as the host counts.
        tid: I32 set,
        /// Parent process.
        ppid: I32 null,
        /// Name, the latest.
        comm: Str null,
        /// Path of the executable.
        exe: Str null,
        /// Command line, arguments quoted for a shell.
        cmdline: Str null,
        /// Path of the cgroup (v2).
        cgroup: Str null,
        /// Id of the container, from the cgroup's name.
        container_id: Str null,
        /// Real user id.
        uid: I64 null,
        /// Mount namespace: the inode number of /proc/PID/ns/mnt. Threads of
        /// containers have another one than those of the host.
        mount_namespace: I64 null,
        /// When the thread began, CLOCK_MONOTONIC nanoseconds; of an imported log
        /// when it shows the thread first.
        started_at_ns: I64 set,
        /// When it ended; null when it had not.
        ended_at_ns: I64 null,
        /// Exit status, or 128 and the signal that ended it.
        exit_status: I32 null,
    }

    /// One row a set of calls that were seen but are not in syscalls: their
    /// counts, bytes and latencies are exact all the same. The counts of all
    /// rows and the rows of syscalls add up to what the kernel saw. Rows of layer
    /// pagecache do the same for tables faults and writeback.
    LOSSES losses LossRows LossRow key ["stage", "cpu", "syscall", "pid", "file_id"] {
        /// Where they were lost: ring (no room in the kernel's buffer), scratch
        /// (no scratch memory in the kernel), decode (damaged record) or write
        /// (no room on disk).
        stage: Str set,
        /// Processor, -1 when not known.
        cpu: I32 set,
        /// Name of the call; page_fault for rows of table faults, writeback for
        /// those of table writeback, block_request, wait, interrupt, stack, perf_counters and
        /// fs_span for those of tables block, waits, irqs, stacks and perf_counters and for
        /// parts of file systems.
        syscall: Str set,
        /// Layer of the event: user, syscall, pagecache, block, sched, irq or fs; cpu for
        /// perf_counters, slices for rows of table slices that found no room on the disk.
        layer: Str set,
        /// Calls lost.
        count: I64 set,
        /// Bytes that they moved.
        bytes: I64 set,
        /// When the first was lost, CLOCK_MONOTONIC nanoseconds.
        first_at_ns: I64 set,
        /// When the last was lost, CLOCK_MONOTONIC nanoseconds.
        last_at_ns: I64 set,
        /// Process, -1 when the kernel had no room to tell.
        pid: I32 set,
        /// File, -1 when there was none or the kernel had no room to tell.
        file_id: I64 set,
        /// Calls that failed.
        errors: I64 set,
        /// Sum of their durations, nanoseconds.
        dur_ns: I64 set,
        /// Longest duration, nanoseconds.
        max_dur_ns: I64 set,
        /// Durations: entry b counts those from 2^b to below 2^(b+1) ns.
        hist: ListI64 set,
    }

    /// Calls without a row of their own, with --rows tail, --budget and --detail counters: one
    /// row per second, process, call and file (with --detail counters only if --count-files is
    /// given). These counts and the rows of table syscalls add up to what the kernel saw.
    COUNTERS counters CounterRows CounterRow key [] {
        /// When the second began, CLOCK_MONOTONIC nanoseconds: the counters of the
        /// kernel were read then and at ended_at_ns.
        ts_ns: I64 set,
        /// When it ended, CLOCK_MONOTONIC nanoseconds.
        ended_at_ns: I64 set,
        /// Name of the call or operation, as in table syscalls.
        syscall: Str set,
        /// Process, -1 when the kernel had no room to tell.
        pid: I32 set,
        /// File, in table files; null when files were not asked for, when there was
        /// none or the kernel had no room to tell.
        file_id: I64 null,
        /// Calls that returned.
        count: I64 set,
        /// Bytes that they moved.
        bytes: I64 set,
        /// Calls that failed.
        errors: I64 set,
        /// Sum of their durations, nanoseconds.
        dur_ns: I64 set,
        /// Longest duration until then, nanoseconds: of this process, call and
        /// file since the recording began.
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
mod tests {
    use super::*;
    use crate::StrId;

    #[test]
    fn batches_follow_the_table() {
        let mut strings = StringTable::new();
        let mut rows = FilePathRows::default();
        rows.push(FilePathRow {
            file_id: 7,
            ts_ns: 1,
            path: strings.intern(b"/x"),
            path_complete: true,
            deleted: false,
            mount_namespace: 1,
        });
        let batch = rows.into_batch(strings);
        assert_eq!(batch.len(), 1);
        assert_eq!(batch.columns.len(), FILE_PATHS.columns.len());
        assert!(FileRows::from_batch(batch.clone()).is_none());
        let (mut rows, strings) = FilePathRows::from_batch(batch).unwrap();
        assert_eq!((rows.file_id.as_slice(), strings.len()), (&[7][..], 1));
        rows.clear();
        assert!(rows.file_id.is_empty() && rows.deleted.is_empty());
    }

    #[test]
    fn a_row_is_replaced_or_added() {
        let mut rows = FilePathRows::default();
        let row = |file_id| FilePathRow {
            file_id,
            ..FilePathRow::default()
        };
        rows.put(0, row(1));
        rows.put(0, row(2));
        rows.put(5, row(3));
        assert_eq!((rows.len(), &rows.file_id[..]), (2, &[2, 3][..]));
        assert_eq!(rows.mount_namespace, [i64::NULL; 2]);
        assert_eq!((rows.ts_ns[0], rows.path[0]), (0, StrId::NULL));
    }

    #[test]
    fn keys_name_columns() {
        for table in TABLES {
            for key in table.key {
                assert!(
                    table.columns.iter().any(|c| c.name == *key),
                    "{}.{key}",
                    table.name
                );
            }
        }
    }
}
