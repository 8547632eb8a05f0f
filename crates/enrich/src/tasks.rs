//! Threads, and the rows of table `processes`.

use std::collections::VecDeque;
use std::sync::Arc;

use fathom_decode::absolute_path;
use fathom_model::abi::{
    TASK_COMM, TASK_DESCRIBED, TASK_EXEC, TASK_EXIT, TASK_FORK, TASK_SEEN, TaskRecord,
};
use fathom_model::batch::{Batch, NULL_I32, NULL_I64};
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::container;
use fathom_model::escape::shell_words;
use fathom_model::tables::{ProcessRow, ProcessRows};
use fathom_model::{StrId, StringTable};
use hashbrown::HashMap;

use crate::containers::Containers;
use crate::text;

/// The properties that the threads of a process share.
#[derive(Debug, Default)]
struct Program {
    exe: String,
    cmdline: String,
    cgroup: String,
    container: Option<String>,
}

#[derive(Debug)]
struct Thread {
    pid: u32,
    ppid: u32,
    uid: u32,
    mnt_ns: u32,
    started_at_ns: u64,
    ended_at_ns: Option<u64>,
    exit_status: Option<i32>,
    comm: Box<str>,
    program: Option<Arc<Program>>,
    /// Batch and place of its row, when it has one in the present batch.
    row: Option<(u32, usize)>,
    /// When the row was written last.
    written_ns: u64,
}

/// The threads that are known.
#[derive(Debug)]
pub(crate) struct Tasks {
    threads: HashMap<u32, Thread>,
    /// Threads in order of arrival, the ones to be forgotten first at the
    /// front.
    order: VecDeque<(u32, u64)>,
    /// Threads that ended in this batch and in the one before.
    ended: [Vec<(u32, u64)>; 2],
    limit: usize,
    refresh_ns: Option<u64>,
    epoch: u32,
    rows: ProcessRows,
    strings: StringTable,
    containers: Containers,
}

impl Tasks {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            threads: HashMap::new(),
            order: VecDeque::new(),
            ended: [Vec::new(), Vec::new()],
            limit: limit.max(1),
            refresh_ns: None,
            epoch: 0,
            rows: ProcessRows::default(),
            strings: StringTable::new(),
            containers: Containers::default(),
        }
    }

    /// Has rows written again that are so much older than what refers to them.
    pub(crate) fn refreshed_after(mut self, age_ns: Option<u64>) -> Self {
        self.refresh_ns = age_ns;
        self
    }

    /// Name of thread `tid`, to which a row refers at `now_ns`; `None` when it is
    /// not known.
    pub(crate) fn used(&mut self, tid: u32, now_ns: u64) -> Option<&str> {
        if let Some(age) = self.refresh_ns {
            let pid = self.threads.get(&tid).map(|t| t.pid);
            for tid in [Some(tid), pid.filter(|pid| *pid != tid)]
                .into_iter()
                .flatten()
            {
                let thread = self.threads.get(&tid);
                if thread.is_some_and(|t| now_ns.saturating_sub(t.written_ns) > age) {
                    self.write(tid, now_ns);
                }
            }
        }
        self.threads.get(&tid).map(|t| &*t.comm)
    }

    /// Takes the names of a container: its id, then namespace, name and UID of its pod, and its own
    /// name.
    pub(crate) fn container(&mut self, now_ns: u64, names: [&[u8]; 5]) {
        self.containers.named(now_ns, names);
    }

    /// The rows of table `containers` since the last time.
    pub(crate) fn take_containers(&mut self) -> Batch {
        self.containers.take()
    }

    /// Takes note of what happened to a thread.
    pub(crate) fn event(&mut self, record: &TaskRecord, cmdline: &[u8], exe: &[u8], cgroup: &[u8]) {
        let event = u32::from(record.event);
        if event == TASK_DESCRIBED {
            self.describe(record, program(cmdline, exe, cgroup));
            return;
        }
        if !(TASK_SEEN..=TASK_EXIT).contains(&event) {
            return;
        }
        let tid = record.tid;
        // A thread id that is used again names another thread.
        let known = self
            .threads
            .get(&tid)
            .is_some_and(|t| t.started_at_ns == record.started_at_ns);
        if !known {
            let program = (event != TASK_EXEC).then(|| self.inherited(record));
            self.add(record, program.flatten());
        }
        let tells = event == TASK_EXEC || !(cmdline.is_empty() && exe.is_empty());
        let program = tells.then(|| Arc::new(program(cmdline, exe, cgroup)));
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        (thread.pid, thread.ppid, thread.uid) = (record.pid, record.ppid, record.uid);
        if record.mnt_ns != 0 {
            thread.mnt_ns = record.mnt_ns;
        }
        let comm = escape_invalid_utf8(text::until_nul(&record.comm));
        if *thread.comm != *comm {
            thread.comm = comm.into();
        }
        if program.is_some() {
            thread.program = program;
        }
        match event {
            TASK_EXIT => {
                thread.ended_at_ns = Some(record.ts_ns);
                thread.exit_status = Some(exit_status(record.exit_code));
                if let Some(ended) = self.ended.first_mut() {
                    ended.push((tid, record.started_at_ns));
                }
            }
            // When another thread than the first one calls exec it takes the
            // place of the first one, whose end was seen already.
            TASK_EXEC => (thread.ended_at_ns, thread.exit_status) = (None, None),
            _ => debug_assert!(matches!(event, TASK_SEEN | TASK_FORK | TASK_COMM)),
        }
        self.write(tid, record.ts_ns);
        if event == TASK_EXEC {
            self.end_siblings(record);
        }
    }

    /// Gives the threads of a process that were there before the recording what
    /// they have in common.
    fn describe(&mut self, record: &TaskRecord, program: Program) {
        let program = Arc::new(program);
        let threads: Vec<u32> = self
            .threads
            .iter()
            .filter(|(_, t)| t.pid == record.pid && t.program.is_none())
            .map(|(tid, _)| *tid)
            .collect();
        for tid in threads {
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.program = Some(Arc::clone(&program));
            }
            self.write(tid, record.ts_ns);
        }
    }

    /// exec ends all other threads of the process. The end of the calling thread, under its
    /// previous id, is not visible otherwise.
    fn end_siblings(&mut self, record: &TaskRecord) {
        let siblings: Vec<u32> = self
            .threads
            .iter()
            .filter(|(tid, t)| {
                t.pid == record.pid && **tid != record.tid && t.ended_at_ns.is_none()
            })
            .map(|(tid, _)| *tid)
            .collect();
        for tid in siblings {
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.ended_at_ns = Some(record.ts_ns);
                let key = (tid, thread.started_at_ns);
                if let Some(ended) = self.ended.first_mut() {
                    ended.push(key);
                }
            }
            self.write(tid, record.ts_ns);
        }
    }

    /// The properties that a new thread gets from its process, or a process from its parent.
    fn inherited(&self, record: &TaskRecord) -> Option<Arc<Program>> {
        let from = if record.tid == record.pid {
            record.ppid
        } else {
            record.pid
        };
        self.threads.get(&from).and_then(|t| t.program.clone())
    }

    fn add(&mut self, record: &TaskRecord, program: Option<Arc<Program>>) {
        while self.threads.len() >= self.limit {
            let Some((tid, started_at_ns)) = self.order.pop_front() else {
                break;
            };
            if self
                .threads
                .get(&tid)
                .is_some_and(|t| t.started_at_ns == started_at_ns)
            {
                self.threads.remove(&tid);
            }
        }
        self.order.push_back((record.tid, record.started_at_ns));
        let thread = Thread {
            pid: record.pid,
            ppid: record.ppid,
            uid: record.uid,
            mnt_ns: 0,
            started_at_ns: record.started_at_ns,
            ended_at_ns: None,
            exit_status: None,
            comm: Box::default(),
            program,
            row: None,
            written_ns: 0,
        };
        self.threads.insert(record.tid, thread);
    }

    /// The inode of the mount namespace in which a thread was seen last; 0 if none is known.
    pub(crate) fn mount_namespace(&self, tid: u32) -> u32 {
        self.threads.get(&tid).map_or(0, |thread| thread.mnt_ns)
    }

    /// Brings the row of a thread up to date.
    fn write(&mut self, tid: u32, now_ns: u64) {
        let Self {
            threads,
            strings,
            rows,
            epoch,
            containers,
            refresh_ns,
            ..
        } = self;
        let Some(thread) = threads.get_mut(&tid) else {
            return;
        };
        let mut intern = |s: Option<&str>| {
            s.filter(|s| !s.is_empty())
                .map_or(StrId::NULL, |s| strings.intern(s.as_bytes()))
        };
        thread.written_ns = thread.written_ns.max(now_ns);
        let program = thread.program.as_deref();
        if let (Some(age), Some(id)) = (*refresh_ns, program.and_then(|p| p.container.as_deref())) {
            containers.used(id, now_ns, age);
        }
        let comm = intern(Some(&thread.comm));
        let exe = intern(program.map(|p| p.exe.as_str()));
        let cmdline = intern(program.map(|p| p.cmdline.as_str()));
        let cgroup = intern(program.map(|p| p.cgroup.as_str()));
        let container = intern(program.and_then(|p| p.container.as_deref()));
        let at = match thread.row {
            Some((of, at)) if of == *epoch => at,
            _ => {
                let at = rows.len();
                thread.row = Some((*epoch, at));
                at
            }
        };
        rows.put(
            at,
            ProcessRow {
                pid: crate::id(thread.pid),
                tid: crate::id(tid),
                ppid: crate::id(thread.ppid),
                comm,
                exe,
                cmdline,
                cgroup,
                container_id: container,
                uid: i64::from(thread.uid),
                mount_namespace: crate::nonzero(thread.mnt_ns),
                started_at_ns: crate::signed(thread.started_at_ns),
                ended_at_ns: thread.ended_at_ns.map_or(NULL_I64, crate::signed),
                exit_status: thread.exit_status.unwrap_or(NULL_I32),
            },
        );
    }

    /// Memory of the rows that were not taken: their strings.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.strings.bytes()
    }

    /// The rows that changed, with their strings. Threads that ended before the
    /// last time are forgotten: calls of theirs may have come until then.
    pub(crate) fn take(&mut self) -> (ProcessRows, StringTable) {
        self.epoch = self.epoch.wrapping_add(1);
        self.ended.swap(0, 1);
        if let Some(ended) = self.ended.first_mut() {
            for (tid, started_at_ns) in ended.drain(..) {
                let gone = |t: &Thread| t.started_at_ns == started_at_ns && t.ended_at_ns.is_some();
                if self.threads.get(&tid).is_some_and(gone) {
                    self.threads.remove(&tid);
                }
            }
        }
        if self.order.len() > 2 * self.threads.len() + 1024 {
            let threads = &self.threads;
            self.order.retain(|(tid, started_at_ns)| {
                threads
                    .get(tid)
                    .is_some_and(|t| t.started_at_ns == *started_at_ns)
            });
        }
        (
            std::mem::take(&mut self.rows),
            std::mem::take(&mut self.strings),
        )
    }
}

fn program(cmdline: &[u8], exe: &[u8], cgroup: &[u8]) -> Program {
    let path = |components: &[u8]| escape_invalid_utf8(&absolute_path(components)).into_owned();
    let cgroup = path(cgroup);
    Program {
        exe: if exe.is_empty() {
            String::new()
        } else {
            path(exe)
        },
        cmdline: if cmdline.is_empty() {
            String::new()
        } else {
            let words = cmdline.strip_suffix(b"\0").unwrap_or(cmdline);
            shell_words(words.split(|byte| *byte == 0))
        },
        container: container::id(&cgroup),
        cgroup,
    }
}

/// A shell's exit status for a status of wait(2).
fn exit_status(wait_status: i32) -> i32 {
    match wait_status & 0x7f {
        0 => wait_status >> 8 & 0xff,
        signal => 128 + signal,
    }
}

#[cfg(test)]
mod tests;
