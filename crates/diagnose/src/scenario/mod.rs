//! Made-up recordings for the tests of rules: calls as they come out of a session.

mod beside;
mod layers;
mod listing;
mod rings;
mod room;

use std::collections::HashMap;

use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::tables::{FileRow, FileRows, ProcessRow, ProcessRows, SyscallRow, SyscallRows};
use fathom_model::{Batch, StrId, StringTable};

use crate::engine::{Diagnosis, Engine};
use crate::finding::Finding;
use crate::rule::Input;
use beside::BesideRows;
pub(crate) use beside::SpanOf;
use layers::{Device, LayerRows};

/// Duration of a call, nanoseconds: a call that moves bytes takes longer.
const CALL_NS: i64 = 1_000;
const SYNC_NS: i64 = 1_000_000;
/// Between two calls, nanoseconds.
const GAP_NS: i64 = 500;

/// A recording that a test makes up.
pub(crate) struct Scenario {
    rows: SyscallRows,
    strings: StringTable,
    files: FileRows,
    file_strings: StringTable,
    ended: ProcessRows,
    ended_strings: StringTable,
    ids: HashMap<String, i64>,
    fds: HashMap<(i32, i32), Open>,
    now: i64,
    pid: i32,
    next_fd: i32,
    hash: i64,
    fs_type: &'static str,
    content: bool,
    /// Added to the time of each call, nanoseconds.
    slow_ns: i64,
    /// Thread of the next calls; `None`: the process's first.
    tid: Option<i32>,
    comm: &'static str,
    layers: LayerRows,
    beside: BesideRows,
    no_layers: bool,
    /// Bytes that the next call waits for from the device, and for how long.
    missed: Option<(i64, i64, &'static str)>,
    /// Pages that the next call brings into the page cache: asked for, and ahead of that.
    cached: Option<(i32, i32)>,
    /// For how long the next call waits for a discard, nanoseconds.
    discard_ns: i64,
    /// Interface of the next calls.
    api: &'static str,
    /// Arguments of the next open.
    mode: Option<String>,
}

#[derive(Clone)]
struct Open {
    path: String,
    file: i64,
    position: i64,
    append: bool,
}

/// One call; the rest of the columns is null.
#[derive(Default)]
struct Row<'a> {
    syscall: &'a str,
    dur_ns: i64,
    ret: i64,
    errno: Option<&'a str>,
    fd: Option<i32>,
    file: Option<i64>,
    offset: Option<i64>,
    bytes: Option<i64>,
    size: Option<i64>,
    flags: Option<&'a str>,
    by_path: bool,
    path: Option<&'a str>,
    path2: Option<&'a str>,
    args: Option<String>,
}

impl Scenario {
    pub(crate) fn new() -> Self {
        Self {
            rows: SyscallRows::default(),
            strings: StringTable::new(),
            files: FileRows::default(),
            file_strings: StringTable::new(),
            ended: ProcessRows::default(),
            ended_strings: StringTable::new(),
            ids: HashMap::new(),
            fds: HashMap::new(),
            now: 1_000_000_000,
            pid: 100,
            next_fd: 3,
            hash: NULL_I64,
            fs_type: "xfs",
            content: false,
            slow_ns: 0,
            tid: None,
            comm: "program",
            layers: LayerRows::default(),
            beside: BesideRows::default(),
            no_layers: false,
            missed: None,
            cached: None,
            api: "syscall",
            mode: None,
            discard_ns: 0,
        }
    }

    /// Calls from here on are made by this thread of the process.
    pub(crate) fn thread(&mut self, tid: i32, comm: &'static str) {
        (self.tid, self.comm) = (Some(tid), comm);
    }

    /// The process ends with this status.
    pub(crate) fn ends(&mut self, exit_status: i32) {
        self.add_process(0, None, ["", ""], exit_status);
    }

    /// The process, which began at a time and whose parent is another one, ends.
    pub(crate) fn child_ends(&mut self, began: i64, parent: i32, comm: &str) {
        self.add_process(began, Some(parent), [comm, ""], 0);
    }

    /// The process, whose parent is another one and which has executed a command, ends.
    pub(crate) fn worker_ends(&mut self, parent: i32, command: &str) {
        let comm = command.split(' ').next().unwrap_or_default();
        self.add_process(0, Some(parent), [comm, command], 0);
    }

    /// The thread of the calls so far ends, and with it its process, whose own name is another.
    pub(crate) fn thread_ends(&mut self, process: &str) {
        let of_thread = ProcessRow {
            pid: self.pid,
            tid: self.tid.unwrap_or(self.pid),
            ppid: NULL_I32,
            comm: self.ended_strings.intern(self.comm.as_bytes()),
            ended_at_ns: self.now,
            ..Default::default()
        };
        self.ended.push(of_thread);
        self.add_process(0, None, [process, ""], 0);
    }

    fn add_process(
        &mut self,
        began: i64,
        parent: Option<i32>,
        [comm, command]: [&str; 2],
        exit_status: i32,
    ) {
        let rows = &mut self.ended;
        rows.push(ProcessRow {
            pid: self.pid,
            tid: self.pid,
            ppid: parent.unwrap_or(NULL_I32),
            comm: self.ended_strings.intern(comm.as_bytes()),
            cmdline: match command {
                "" => StrId::NULL,
                _ => self.ended_strings.intern(command.as_bytes()),
            },
            started_at_ns: began,
            ended_at_ns: self.now,
            exit_status,
            ..Default::default()
        });
    }

    /// Calls from here on are made by another process.
    pub(crate) fn process(&mut self, pid: i32) {
        self.pid = pid;
    }

    /// The process has the descriptors of another one.
    pub(crate) fn inherits(&mut self, parent: i32) {
        let pid = self.pid;
        let of_parent = self.fds.iter().filter(|((of, _), _)| *of == parent);
        let own: Vec<_> = of_parent
            .map(|((_, fd), open)| ((pid, *fd), open.clone()))
            .collect();
        self.fds.extend(own);
    }

    /// Files from here on lie on a file system of this type.
    pub(crate) fn fs_type(&mut self, fs_type: &'static str) {
        self.fs_type = fs_type;
    }

    /// The recording has hashes.
    pub(crate) fn has_content(&mut self) {
        self.content = true;
    }

    /// Hash of the bytes of calls from here on.
    pub(crate) fn hash(&mut self, hash: i64) {
        self.hash = hash;
    }

    pub(crate) fn wait_us(&mut self, us: i64) {
        self.now += us * 1000;
    }

    pub(crate) fn wait_ms(&mut self, ms: i64) {
        self.now += ms * 1_000_000;
    }

    /// The path names another file from here on.
    pub(crate) fn new_file(&mut self, path: &str) {
        self.ids.remove(path);
    }

    fn file(&mut self, path: &str, file_type: &str, size: i64) -> i64 {
        if let Some(id) = self.ids.get(path) {
            return *id;
        }
        let id = self.files.file_id.len() as i64 + 1;
        self.ids.insert(path.to_owned(), id);
        let path = self.file_strings.intern(path.as_bytes());
        let rows = &mut self.files;
        rows.push(FileRow {
            file_id: id,
            dev: 1,
            ino: id,
            generation: 0,
            file_tag: path,
            path,
            file_type: self.file_strings.intern(file_type.as_bytes()),
            fs_type: self.file_strings.intern(self.fs_type.as_bytes()),
            size,
            first_seen_at_ns: self.now,
            path_complete: true,
            ..Default::default()
        });
        id
    }

    fn call(&mut self, row: Row) {
        let mut text =
            |text: Option<&str>| text.map_or(StrId::NULL, |t| self.strings.intern(t.as_bytes()));
        let rows = &mut self.rows;
        let mut dur = if row.dur_ns > 0 { row.dur_ns } else { CALL_NS } + self.slow_ns;
        dur += std::mem::take(&mut self.discard_ns);
        if let Some((bytes, wait_ns, origin)) = self.missed.take() {
            self.layers.device(&Device {
                rid: Some(rows.rid.len() as i64 + 1),
                op: "read",
                origin,
                bytes,
                queued_at_ns: self.now + 100,
                completed_at_ns: self.now + wait_ns,
                pid: self.pid,
                comm: self.comm,
                file: row.file,
                offset: row.offset.map(|offset| offset & !4095),
            });
            dur += wait_ns;
        }
        let (misses, ahead) = self.cached.take().unwrap_or((NULL_I32, NULL_I32));
        rows.push(SyscallRow {
            rid: rows.rid.len() as i64 + 1,
            ts_ns: self.now,
            dur_ns: dur,
            pid: self.pid,
            tid: self.tid.unwrap_or(self.pid),
            comm: text(Some(self.comm)),
            cpu: 0,
            syscall: text(Some(row.syscall)),
            class: StrId::NULL,
            ret: row.ret,
            errno: text(row.errno),
            fd: row.fd.unwrap_or(NULL_I32),
            file_id: row.file.unwrap_or(NULL_I64),
            file_offset: row.offset.unwrap_or(NULL_I64),
            size: row.size.unwrap_or(NULL_I64),
            bytes: row.bytes.unwrap_or(NULL_I64),
            flags: text(row.flags),
            path_arg: text(row.path.filter(|_| row.by_path)),
            path_arg2: text(row.path2),
            path: text(row.path),
            path2: text(row.path2),
            hash: if row.bytes.is_some() {
                self.hash
            } else {
                NULL_I64
            },
            args: text(row.args.as_deref()),
            api: text(Some(self.api)),
            cache_misses: misses,
            readahead_pages: ahead,
            ..Default::default()
        });
        self.now += dur + GAP_NS;
    }

    fn opened(&mut self, path: &str, flags: &str, file: i64) -> i32 {
        let fd = self.next_fd;
        self.next_fd += 1;
        let open = Open {
            path: path.to_owned(),
            file,
            position: 0,
            append: flags.contains("O_APPEND"),
        };
        self.fds.insert((self.pid, fd), open);
        let args = self.mode.take();
        self.call(Row {
            syscall: "openat",
            ret: fd.into(),
            file: Some(file),
            flags: Some(flags),
            by_path: true,
            path: Some(path),
            args,
            ..Row::default()
        });
        fd
    }

    /// Opens a file that may be new.
    pub(crate) fn open(&mut self, path: &str, flags: &str) -> i32 {
        let file = self.file(path, "regular", 0);
        self.opened(path, flags, file)
    }

    /// Opens a file that was there before the recording.
    pub(crate) fn open_existing(&mut self, path: &str, flags: &str, size: i64) -> i32 {
        let file = self.file(path, "regular", size);
        self.opened(path, flags, file)
    }

    /// Opens a character device.
    pub(crate) fn open_device(&mut self, path: &str, flags: &str) -> i32 {
        let file = self.file(path, "char", 0);
        self.opened(path, flags, file)
    }

    pub(crate) fn open_directory(&mut self, path: &str) -> i32 {
        let file = self.file(path, "directory", 4096);
        self.opened(path, "O_RDONLY|O_DIRECTORY", file)
    }

    /// Path and id of the file of a descriptor.
    fn open_file(&self, fd: i32) -> (String, Option<i64>) {
        let open = self.fds.get(&(self.pid, fd));
        open.map_or((String::new(), None), |o| (o.path.clone(), Some(o.file)))
    }

    fn on(&mut self, syscall: &str, fd: i32, dur_ns: i64) {
        let (path, file) = self.open_file(fd);
        self.call(Row {
            syscall,
            dur_ns,
            fd: Some(fd),
            file,
            path: Some(&path),
            ..Row::default()
        });
    }

    fn data(&mut self, syscall: &str, fd: i32, bytes: i64, at: Option<i64>) {
        self.data_of(syscall, fd, bytes, bytes, at);
    }

    /// Moves `bytes` of `size` that were asked for.
    fn data_of(&mut self, syscall: &str, fd: i32, bytes: i64, size: i64, at: Option<i64>) {
        let Some(open) = self.fds.get_mut(&(self.pid, fd)) else {
            return;
        };
        let offset = at.unwrap_or(open.position);
        if at.is_none() {
            open.position += bytes;
        }
        let (path, file) = (open.path.clone(), Some(open.file));
        self.call(Row {
            syscall,
            dur_ns: CALL_NS + bytes / 10,
            ret: bytes,
            fd: Some(fd),
            file,
            offset: Some(offset),
            bytes: Some(bytes),
            size: Some(size),
            path: Some(&path),
            ..Row::default()
        });
    }

    pub(crate) fn short_read(&mut self, fd: i32, bytes: i64, size: i64) {
        self.data_of("read", fd, bytes, size, None);
    }

    pub(crate) fn short_write(&mut self, fd: i32, bytes: i64, size: i64) {
        self.data_of("write", fd, bytes, size, None);
    }

    pub(crate) fn read(&mut self, fd: i32, bytes: i64) {
        self.data("read", fd, bytes, None);
    }

    /// A read at the end of the file.
    pub(crate) fn read_nothing(&mut self, fd: i32) {
        self.data("read", fd, 0, None);
    }

    pub(crate) fn write(&mut self, fd: i32, bytes: i64) {
        self.data("write", fd, bytes, None);
        debug_assert!(
            !self
                .fds
                .get(&(self.pid, fd))
                .is_some_and(|o| o.append && o.position == 0)
        );
    }

    pub(crate) fn pread(&mut self, fd: i32, bytes: i64, at: i64) {
        self.data("pread64", fd, bytes, Some(at));
    }

    pub(crate) fn pwrite(&mut self, fd: i32, bytes: i64, at: i64) {
        self.data("pwrite64", fd, bytes, Some(at));
    }

    /// A `pwrite` of another thread that begins while the call before is under way,
    /// and takes `times` as long as it would alone.
    pub(crate) fn pwrite_beside(&mut self, tid: i32, fd: i32, bytes: i64, at: i64, times: i64) {
        let after = self.now;
        self.now -= GAP_NS + 100;
        self.tid = Some(tid);
        self.slow_ns = (times - 1) * (CALL_NS + bytes / 10);
        self.pwrite(fd, bytes, at);
        (self.tid, self.slow_ns) = (None, 0);
        self.now = self.now.max(after);
    }

    /// The current time, nanoseconds.
    pub(crate) fn now(&self) -> i64 {
        self.now
    }

    /// Calls from here on begin as if it were that time.
    pub(crate) fn back_to(&mut self, now: i64) {
        self.now = now;
    }

    /// A `pwrite` that began at a time and returns now.
    pub(crate) fn pwrite_since(&mut self, fd: i32, bytes: i64, began: i64) {
        let after = self.now;
        self.now = began;
        self.slow_ns = (after - began - CALL_NS - bytes / 10 - GAP_NS).max(0);
        self.pwrite(fd, bytes, 0);
        (self.slow_ns, self.now) = (0, after);
    }

    /// Calls from here on take so much longer.
    pub(crate) fn slow(&mut self, ns: i64) {
        self.slow_ns = ns;
    }

    /// A lock that takes `dur_ns`.
    pub(crate) fn flock(&mut self, fd: i32, dur_ns: i64) {
        let (path, file) = self.open_file(fd);
        self.call(Row {
            syscall: "flock",
            dur_ns,
            fd: Some(fd),
            file,
            flags: Some("LOCK_EX"),
            path: Some(&path),
            ..Row::default()
        });
    }

    pub(crate) fn fsync(&mut self, fd: i32) {
        self.on("fsync", fd, SYNC_NS);
    }

    pub(crate) fn fdatasync(&mut self, fd: i32) {
        self.on("fdatasync", fd, SYNC_NS);
    }

    pub(crate) fn close(&mut self, fd: i32) {
        self.on("close", fd, 0);
        self.fds.remove(&(self.pid, fd));
    }

    pub(crate) fn lseek(&mut self, fd: i32, to: i64) {
        self.lseek_for(fd, to, "SEEK_SET");
    }

    pub(crate) fn lseek_for(&mut self, fd: i32, to: i64, whence: &str) {
        let Some(open) = self.fds.get_mut(&(self.pid, fd)) else {
            return;
        };
        open.position = to;
        let (path, file) = (open.path.clone(), Some(open.file));
        self.call(Row {
            syscall: "lseek",
            ret: to,
            fd: Some(fd),
            file,
            path: Some(&path),
            args: Some(format!("offset={to}, whence={whence}")),
            ..Row::default()
        });
    }

    pub(crate) fn fail(&mut self, syscall: &str, fd: i32, errno: &str) {
        let (path, file) = self.open_file(fd);
        self.call(Row {
            syscall,
            ret: -1,
            errno: Some(errno),
            fd: Some(fd),
            file,
            path: Some(&path),
            ..Row::default()
        });
    }

    /// A write at the position of the descriptor, or a given one, that fails.
    pub(crate) fn fail_write(&mut self, fd: i32, size: i64, at: Option<i64>, errno: &str) {
        let position = self.fds.get(&(self.pid, fd)).map(|open| open.position);
        let syscall = if at.is_some() { "pwrite64" } else { "write" };
        self.fail_at(syscall, fd, size, at.or(position), errno);
    }

    /// A call that moves data at a place, and fails. The place of an append is not known.
    pub(crate) fn fail_at(
        &mut self,
        syscall: &str,
        fd: i32,
        size: i64,
        at: Option<i64>,
        errno: &str,
    ) {
        let (path, file) = self.open_file(fd);
        self.call(Row {
            syscall,
            ret: -1,
            errno: Some(errno),
            fd: Some(fd),
            file,
            offset: at,
            size: Some(size),
            path: Some(&path),
            ..Row::default()
        });
    }

    pub(crate) fn stat(&mut self, path: &str) {
        let file = self.file(path, "regular", 4096);
        self.call(Row {
            syscall: "newfstatat",
            file: Some(file),
            by_path: true,
            path: Some(path),
            ..Row::default()
        });
    }

    /// fstat of the C library.
    pub(crate) fn fstat(&mut self, fd: i32) {
        let (path, file) = self.open_file(fd);
        self.call(Row {
            syscall: "newfstatat",
            file,
            path: Some(&path),
            flags: Some("AT_EMPTY_PATH"),
            args: Some(format!("dirfd={fd}<{path}>, stat={{st_size=4096, ...}}")),
            ..Row::default()
        });
    }

    pub(crate) fn stat_missing(&mut self, path: &str) {
        self.call(Row {
            syscall: "newfstatat",
            ret: -2,
            errno: Some("ENOENT"),
            by_path: true,
            path: Some(path),
            ..Row::default()
        });
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        self.call(Row {
            syscall: "rename",
            by_path: true,
            path: Some(from),
            path2: Some(to),
            ..Row::default()
        });
        if let Some(id) = self.ids.remove(from) {
            self.ids.insert(to.to_owned(), id);
        }
    }

    pub(crate) fn unlink(&mut self, path: &str) {
        self.call(Row {
            syscall: "unlink",
            by_path: true,
            path: Some(path),
            ..Row::default()
        });
    }

    /// The result of the rules.
    /// Its files and calls as rows.
    pub(crate) fn batches(self) -> Vec<Batch> {
        vec![
            self.files.into_batch(self.file_strings),
            self.rows.into_batch(self.strings),
        ]
    }

    /// The combined results of the rules.
    pub(crate) fn diagnose(self) -> Diagnosis {
        self.engine().diagnosis()
    }

    /// The results of each rule.
    pub(crate) fn findings(self) -> Vec<Finding> {
        self.engine().result().diagnosis.findings
    }

    pub(crate) fn engine(self) -> Engine {
        let mut engine = Engine::default();
        engine.with_short_losses();
        if !self.content {
            engine.lacks(Input::Content, "not recorded");
        }
        if self.no_layers {
            for input in [
                Input::Cache,
                Input::Block,
                Input::Waits,
                Input::Faults,
                Input::Interrupts,
            ] {
                engine.lacks(input, "not recorded");
            }
        }
        engine.feed(&self.files.into_batch(self.file_strings));
        engine.feed(&self.ended.into_batch(self.ended_strings));
        self.layers.feed(&mut engine);
        self.beside.feed(&mut engine);
        let calls: Batch = self.rows.into_batch(self.strings);
        engine.feed(&calls);
        engine
    }
}

/// Findings of a rule, which must have some.
pub(crate) fn fires(rule: &str, scenario: Scenario) -> Vec<Finding> {
    let all = scenario.findings();
    let found: Vec<_> = all.iter().filter(|f| f.rule == rule).cloned().collect();
    assert!(!found.is_empty(), "{rule} is silent; others: {all:#?}");
    for finding in &found {
        assert!(!finding.examples.is_empty(), "{rule} without an example");
        assert!(!finding.title.is_empty() && !finding.query.is_empty());
        grammatical(&finding.title);
        for number in &finding.evidence {
            let known = crate::evidence_words::phrase(rule, &number.name);
            assert!(known.is_some(), "{} of {rule} has no phrase", number.name);
        }
    }
    found
}

/// A title must be right for one and for many: no `1 times`, no `0.0 reads`.
fn grammatical(title: &str) {
    let words: Vec<&str> = title.split_whitespace().collect();
    for pair in words.windows(2) {
        let noun = pair[1].trim_end_matches([',', ';', ':', '.']);
        let several = noun.len() > 3 && noun.ends_with('s') && !noun.ends_with("ss");
        assert!(!(pair[0] == "1" && several), "1 {noun}: {title}");
        let none = matches!(pair[0], "0" | "0.0") && noun.ends_with('s');
        assert!(!none, "{} {noun}: {title}", pair[0]);
    }
}

/// A rule must have nothing to say.
pub(crate) fn silent(rule: &str, scenario: Scenario) {
    let found: Vec<_> = scenario
        .findings()
        .into_iter()
        .filter(|f| f.rule == rule)
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}
