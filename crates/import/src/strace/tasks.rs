//! Threads of a log: which process they belong to, which descriptors they have,
//! and where those stand in their files.
//!
//! A position is known of a file that was opened in the log, as long as each call
//! that moved it is in the log and no two did at once. It belongs to the open file
//! description, which dup, fork and threads share.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::builder::ThreadInfo;

/// An open file description.
#[derive(Debug, Default)]
pub struct Description {
    /// Where the next read or write takes place, while that is certain.
    pub position: Option<i64>,
    /// Opened with O_APPEND: writes go to the end, wherever that is.
    pub append: bool,
    /// Path when it was opened.
    pub path: Option<Vec<u8>>,
    pub file_id: Option<i64>,
    /// Calls that are moving the position.
    pub moving: u32,
    /// Times that two did so at once.
    pub disturbed: u64,
}

/// A description that descriptors share.
pub type Shared = Rc<RefCell<Description>>;

#[derive(Clone, Debug)]
struct Slot {
    description: Shared,
    close_on_exec: bool,
}

/// Descriptors of a process.
type Table = Rc<RefCell<HashMap<i32, Slot>>>;

/// A thread.
#[derive(Debug)]
pub struct Task {
    /// Its row in `processes`.
    pub info: ThreadInfo,
    /// Its directory, while that is known.
    pub cwd: Rc<RefCell<Option<Vec<u8>>>>,
    table: Table,
    /// The call that it is in: name, text so far, when it began.
    pub pending: Option<Pending>,
}

/// A call of which the log has the beginning.
#[derive(Clone, Debug)]
pub struct Pending {
    pub name: Vec<u8>,
    /// The text after the opening bracket.
    pub text: Vec<u8>,
    pub ts_ns: i64,
    /// The description whose position it moves, and how often that was disturbed
    /// before.
    pub moves: Option<(Shared, u64)>,
}

/// How a new task relates to its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CloneFlags {
    /// Same process.
    pub thread: bool,
    /// Same descriptors.
    pub files: bool,
    /// Same directory.
    pub fs: bool,
    pub parent: bool,
}

#[derive(Debug, Default)]
pub struct Tasks {
    tasks: HashMap<i32, Task>,
    /// Threads that have ended, to be stored.
    ended: Vec<ThreadInfo>,
    first: bool,
}

impl Task {
    fn new(tid: i32, ns: i64) -> Self {
        Task {
            info: ThreadInfo {
                tid,
                started_at_ns: ns,
                ..ThreadInfo::default()
            },
            cwd: Rc::default(),
            table: Rc::default(),
            pending: None,
        }
    }

    /// The file behind descriptor `fd`.
    pub fn description(&self, fd: i32) -> Option<Shared> {
        let table = self.table.borrow();
        table.get(&fd).map(|slot| slot.description.clone())
    }

    /// A descriptor leads to something new.
    pub fn install(&self, fd: i32, description: Shared, close_on_exec: bool) {
        let slot = Slot {
            description,
            close_on_exec,
        };
        self.table.borrow_mut().insert(fd, slot);
    }

    pub fn close(&self, fd: i32) {
        self.table.borrow_mut().remove(&fd);
    }

    /// Descriptors from `first` to `last` were closed, or marked to be.
    pub fn close_range(&self, first: i32, last: i32, mark_only: bool) {
        let mut table = self.table.borrow_mut();
        if mark_only {
            for (fd, slot) in table.iter_mut() {
                slot.close_on_exec |= (first..=last).contains(fd);
            }
        } else {
            table.retain(|fd, _| !(first..=last).contains(fd));
        }
    }

    /// FD_CLOEXEC was set or taken away.
    pub fn close_on_exec(&self, fd: i32, on: bool) {
        if let Some(slot) = self.table.borrow_mut().get_mut(&fd) {
            slot.close_on_exec = on;
        }
    }

    /// The task executes a program: it has its descriptors for itself.
    pub fn exec(&mut self) {
        let mut table = self.table.borrow().clone();
        table.retain(|_, slot| !slot.close_on_exec);
        self.table = Rc::new(RefCell::new(table));
        let cwd = self.cwd.borrow().clone();
        self.cwd = Rc::new(RefCell::new(cwd));
    }

    /// Its descriptors are its own from now on (unshare).
    pub fn unshare_files(&mut self) {
        let table = self.table.borrow().clone();
        self.table = Rc::new(RefCell::new(table));
    }

    /// No position of its descriptors is certain any more.
    pub fn forget_positions(&self) {
        for slot in self.table.borrow().values() {
            slot.description.borrow_mut().position = None;
        }
    }
}

impl Tasks {
    /// The task, which is new when the log has not shown it before.
    pub fn get(&mut self, tid: i32, ns: i64) -> &mut Task {
        if !self.tasks.contains_key(&tid) {
            let mut task = self.child_of_pending(tid, ns);
            // strace starts processes, not threads.
            if !self.first && task.info.pid.is_none() {
                task.info.pid = Some(tid);
            }
            self.tasks.insert(tid, task);
        }
        self.first = true;
        self.tasks.entry(tid).or_insert_with(|| Task::new(tid, ns))
    }

    pub fn known(&self, tid: i32) -> Option<&Task> {
        self.tasks.get(&tid)
    }

    /// A new task whose parent's clone has not returned yet: if there is one such
    /// call only, it is of that parent.
    fn child_of_pending(&self, tid: i32, ns: i64) -> Task {
        let mut parents = self.tasks.values().filter_map(|task| {
            let pending = task.pending.as_ref()?;
            Some((task, clone_flags(&pending.name, &pending.text)?))
        });
        match (parents.next(), parents.next()) {
            (Some((parent, flags)), None) => child(parent, flags, tid, ns),
            _ => Task::new(tid, ns),
        }
    }

    /// A clone of `parent` has made `tid`.
    pub fn cloned(&mut self, parent: i32, tid: i32, flags: CloneFlags, ns: i64) {
        let Some(parent) = self.tasks.get(&parent) else {
            return;
        };
        let made = child(parent, flags, tid, ns);
        match self.tasks.get_mut(&tid) {
            // It was there first; what it did meanwhile stays.
            Some(task) => {
                task.info.pid = task.info.pid.or(made.info.pid);
                task.info.ppid = task.info.ppid.or(made.info.ppid);
                task.info.comm = task.info.comm.take().or(made.info.comm);
            }
            None => {
                self.tasks.insert(tid, made);
            }
        }
    }

    pub fn ended(&mut self, tid: i32, ns: i64, status: Option<i32>) -> Option<Task> {
        let mut task = self.tasks.remove(&tid)?;
        task.info.ended_at_ns = Some(ns);
        task.info.exit_status = status;
        self.ended.push(task.info.clone());
        Some(task)
    }

    /// Thread `from` goes on as `to`, the first of its process.
    pub fn renamed(&mut self, from: i32, to: i32, ns: i64) {
        self.ended(to, ns, None);
        if let Some(mut task) = self.tasks.remove(&from) {
            let start = task.info.started_at_ns;
            let mut old = task.info.clone();
            old.ended_at_ns = Some(ns);
            self.ended.push(old);
            task.info.tid = to;
            task.info.pid = Some(to);
            task.info.started_at_ns = start.max(ns);
            self.tasks.insert(to, task);
        }
    }

    /// Threads that have ended since the last time.
    pub fn take_ended(&mut self) -> Vec<ThreadInfo> {
        std::mem::take(&mut self.ended)
    }

    /// How many threads have ended since the last time they were taken.
    pub fn ended_count(&self) -> usize {
        self.ended.len()
    }

    /// Ids of the threads that have not ended.
    pub fn ids(&self) -> Vec<i32> {
        self.tasks.keys().copied().collect()
    }

    /// All that are left, in order of their ids.
    pub fn drain(&mut self) -> Vec<Task> {
        let mut all: Vec<Task> = self.tasks.drain().map(|(_, task)| task).collect();
        all.sort_by_key(|task| task.info.tid);
        all
    }
}

fn child(parent: &Task, flags: CloneFlags, tid: i32, ns: i64) -> Task {
    let mut task = Task::new(tid, ns);
    task.info.comm = parent.info.comm.clone();
    task.info.exe = parent.info.exe.clone();
    task.info.cmdline = parent.info.cmdline.clone();
    if flags.thread {
        task.info.pid = parent.info.pid;
        task.info.ppid = parent.info.ppid;
    } else {
        task.info.pid = Some(tid);
        task.info.ppid = if flags.parent {
            parent.info.ppid
        } else {
            parent.info.pid
        };
    }
    task.table = match flags.files {
        true => parent.table.clone(),
        false => Rc::new(RefCell::new(parent.table.borrow().clone())),
    };
    task.cwd = match flags.fs {
        true => parent.cwd.clone(),
        false => Rc::new(RefCell::new(parent.cwd.borrow().clone())),
    };
    task
}

/// The flags of a call that makes a task; `None` for another call.
pub fn clone_flags(name: &[u8], text: &[u8]) -> Option<CloneFlags> {
    match name {
        b"fork" | b"vfork" => Some(CloneFlags::default()),
        b"clone" | b"clone2" | b"clone3" => {
            let has = |flag: &[u8]| {
                super::line::find(text, flag).is_some_and(|at| {
                    let after = text.get(at + flag.len());
                    !after.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
                })
            };
            Some(CloneFlags {
                thread: has(b"CLONE_THREAD"),
                files: has(b"CLONE_FILES"),
                fs: has(b"CLONE_FS"),
                parent: has(b"CLONE_PARENT"),
            })
        }
        _ => None,
    }
}
