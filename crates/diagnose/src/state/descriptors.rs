//! The file behind each descriptor of each process.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use crate::call::{Call, FileId, has_flag};
use crate::kind::Kind;
use crate::text::Text;

/// An open file description: what `open` makes and `dup` and `fork` share.
#[derive(Clone, Debug)]
pub struct Description {
    /// The file; `None` if no call identified it.
    pub file: Option<FileId>,
    /// The call that opened it; `None` when it was open before the recording.
    pub opened: Option<Opened>,
    /// Descriptors that stand for it.
    pub descriptors: u32,
    /// Where the last read or write ended.
    pub end: Option<i64>,
    /// Reads and writes so far.
    pub ios: u64,
    /// Bytes written through it so far.
    pub written: i64,
    /// When the last read or write ended; 0 before the first.
    pub used_at_ns: i64,
    /// The flags that `F_SETFL` gave it since, in strace's words.
    pub changed_flags: Option<Text>,
}

/// Flags that `F_SETFL` changes (fcntl(2)).
const CHANGEABLE: [&str; 5] = ["O_APPEND", "O_ASYNC", "O_DIRECT", "O_NOATIME", "O_NONBLOCK"];

/// The opener of a description, the time, and the flags.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The call.
    pub rid: i64,
    pub ts_ns: i64,
    pub pid: i32,
    pub tid: i32,
    pub dur_ns: i64,
    /// Its name.
    pub syscall: Text,
    pub path: Text,
    /// Its flags, in strace's words.
    pub flags: Text,
    /// Whether O_DIRECT is one of them.
    pub direct: bool,
    /// Whether O_SYNC or O_DSYNC is.
    pub synchronous: bool,
}

impl Description {
    /// Whether its open was seen, or a change of its flags since.
    pub fn flags_are_known(&self) -> bool {
        self.opened.is_some() || self.changed_flags.is_some()
    }

    /// Whether it was seen to be opened with O_DIRECT, or to get it later.
    pub fn is_direct(&self) -> bool {
        match &self.changed_flags {
            Some(flags) => has_flag(flags, "O_DIRECT"),
            None => self.opened.as_ref().is_some_and(|opened| opened.direct),
        }
    }

    /// Whether it was seen to be opened with O_SYNC or O_DSYNC.
    pub fn is_synchronous(&self) -> bool {
        self.opened
            .as_ref()
            .is_some_and(|opened| opened.synchronous)
    }

    /// Whether it was opened with a flag, or has it since; `None` when that was not seen.
    pub fn opened_with(&self, flag: &str) -> Option<bool> {
        let changed = self.changed_flags.as_ref();
        if let Some(flags) = changed.filter(|_| CHANGEABLE.contains(&flag)) {
            return Some(has_flag(flags, flag));
        }
        let opened = self.opened.as_ref()?;
        Some(has_flag(&opened.flags, flag))
    }
}

/// A description of this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DescriptionId(u32);

/// Descriptors below this have a place each: programs get the lowest that is free.
const LOW: usize = 256;

/// The descriptors of a process.
#[derive(Clone, Debug, Default)]
struct OfProcess {
    low: Vec<Option<DescriptionId>>,
    high: BTreeMap<i32, DescriptionId>,
}

impl OfProcess {
    fn place(fd: i32) -> Option<usize> {
        usize::try_from(fd).ok().filter(|fd| *fd < LOW)
    }

    fn get(&self, fd: i32) -> Option<DescriptionId> {
        match Self::place(fd) {
            Some(place) => self.low.get(place).copied().flatten(),
            None => self.high.get(&fd).copied(),
        }
    }

    fn insert(&mut self, fd: i32, id: DescriptionId) {
        let Some(place) = Self::place(fd) else {
            self.high.insert(fd, id);
            return;
        };
        if self.low.len() <= place {
            self.low.resize(place + 1, None);
        }
        if let Some(slot) = self.low.get_mut(place) {
            *slot = Some(id);
        }
    }

    fn remove(&mut self, fd: i32) -> Option<DescriptionId> {
        match Self::place(fd) {
            Some(place) => self.low.get_mut(place).and_then(Option::take),
            None => self.high.remove(&fd),
        }
    }

    /// All of them by their numbers.
    fn iter(&self) -> impl Iterator<Item = (i32, DescriptionId)> {
        let low = (0..).zip(&self.low);
        let low = low.filter_map(|(fd, id)| Some((fd, (*id)?)));
        low.chain(self.high.iter().map(|(fd, id)| (*fd, *id)))
    }
}

/// All open descriptions, and which descriptors stand for them.
#[derive(Debug, Default)]
pub struct Descriptors {
    slots: Vec<Option<Description>>,
    free: Vec<u32>,
    processes: HashMap<i32, OfProcess>,
}

impl Descriptors {
    /// The file behind a descriptor.
    pub fn find(&self, pid: i32, fd: i32) -> Option<DescriptionId> {
        self.processes.get(&pid)?.get(fd)
    }

    pub fn get(&self, id: DescriptionId) -> Option<&Description> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// Descriptors of a process that are known to be open.
    pub fn open_in(&self, pid: i32) -> impl Iterator<Item = (i32, &Description)> {
        let table = self.processes.get(&pid).into_iter();
        let all = table.flat_map(OfProcess::iter);
        all.filter_map(|(fd, id)| Some((fd, self.get(id)?)))
    }

    /// The description that a call works on, made when its descriptor was open
    /// before the recording, or was seen to stand for another file.
    pub(crate) fn of_call(&mut self, call: &Call) -> Option<DescriptionId> {
        let (fd, file) = (call.fd.filter(|fd| *fd >= 0)?, call.file);
        // Indexes of registered files are no descriptors.
        if call.operation {
            return self.find(call.pid, fd).filter(|id| {
                let same = |d: &Description| d.file == file;
                self.get(*id).is_some_and(same)
            });
        }
        if let Some(id) = self.find(call.pid, fd) {
            let known = self.slots.get_mut(id.0 as usize).and_then(Option::as_mut)?;
            if file.is_none() || known.file.is_none() || known.file == file {
                known.file = known.file.or(file);
                return Some(id);
            }
            self.remove(call.pid, fd);
        }
        if call.errno.is_some() && file.is_none() {
            return None;
        }
        Some(self.insert(call.pid, fd, file, None))
    }

    fn insert(
        &mut self,
        pid: i32,
        fd: i32,
        file: Option<FileId>,
        opened: Option<Opened>,
    ) -> DescriptionId {
        let description = Description {
            file,
            opened,
            descriptors: 0,
            end: None,
            ios: 0,
            written: 0,
            used_at_ns: 0,
            changed_flags: None,
        };
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.slots.push(None);
                u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
            }
        };
        if let Some(slot) = self.slots.get_mut(id as usize) {
            *slot = Some(description);
        }
        self.name(pid, fd, DescriptionId(id));
        DescriptionId(id)
    }

    fn name(&mut self, pid: i32, fd: i32, id: DescriptionId) {
        self.remove(pid, fd);
        if let Some(description) = self.slots.get_mut(id.0 as usize).and_then(Option::as_mut) {
            description.descriptors += 1;
            self.processes.entry(pid).or_default().insert(fd, id);
        }
    }

    fn remove(&mut self, pid: i32, fd: i32) {
        let table = self.processes.get_mut(&pid);
        if let Some(id) = table.and_then(|table| table.remove(fd)) {
            self.release(id);
        }
    }

    fn release(&mut self, id: DescriptionId) {
        let Some(slot) = self.slots.get_mut(id.0 as usize) else {
            return;
        };
        if let Some(description) = slot {
            description.descriptors = description.descriptors.saturating_sub(1);
            if description.descriptors == 0 {
                *slot = None;
                self.free.push(id.0);
            }
        }
    }

    /// A process was forked: it has what its parent has.
    pub(crate) fn fork(&mut self, parent: i32, child: i32) {
        self.exit(child);
        let Some(table) = self.processes.get(&parent).cloned() else {
            return;
        };
        for (fd, id) in table.iter() {
            self.name(child, fd, id);
        }
    }

    pub(crate) fn exit(&mut self, pid: i32) {
        for (_, id) in self.processes.remove(&pid).iter().flat_map(OfProcess::iter) {
            self.release(id);
        }
    }

    /// The effect of a call after all rules have examined it.
    pub(crate) fn apply(&mut self, call: &Call, description: Option<DescriptionId>) {
        let (pid, fd) = (call.pid, call.fd);
        if let Some(new) = call.new_fd() {
            if call.kind == Kind::Open {
                let opened = Opened {
                    rid: call.rid,
                    ts_ns: call.ts_ns,
                    pid,
                    tid: call.tid,
                    dur_ns: call.dur_ns,
                    syscall: call.syscall_text(),
                    path: call.path_text(),
                    flags: call.flags_text(),
                    direct: call.has_flag("O_DIRECT"),
                    synchronous: call.has_flag("O_SYNC") || call.has_flag("O_DSYNC"),
                };
                self.insert(pid, new, call.file, Some(opened));
            } else if Some(new) != fd {
                match description {
                    Some(id) => self.name(pid, new, id),
                    None => self.remove(pid, new),
                }
            }
            return;
        }
        match call.kind {
            // Linux frees the descriptor even if close fails, unless it was none.
            Kind::Close if call.ret.is_some() && !call.failed_with("EBADF") => {
                if let Some(fd) = fd {
                    self.remove(pid, fd);
                }
            }
            Kind::CloseRange if call.succeeded() && call.flags == "0" => {
                let bound = |name| call.arg(name).and_then(|n| n.parse::<u32>().ok());
                let first =
                    bound("first").map_or(i32::MAX, |n| i32::try_from(n).unwrap_or(i32::MAX));
                let last = bound("last").map_or(i32::MAX, |n| i32::try_from(n).unwrap_or(i32::MAX));
                let table = self.processes.get(&pid);
                let open: Vec<i32> = table
                    .filter(|_| first <= last)
                    .map(|t| {
                        t.iter()
                            .map(|(fd, _)| fd)
                            .filter(|fd| (first..=last).contains(fd))
                            .collect()
                    })
                    .unwrap_or_default();
                open.into_iter().for_each(|fd| self.remove(pid, fd));
            }
            Kind::Fcntl if call.succeeded() && call.arg("cmd") == Some("F_SETFL") => {
                let slot = description.and_then(|id| self.slots.get_mut(id.0 as usize)?.as_mut());
                if let Some((description, flags)) = slot.zip(call.arg("arg")) {
                    description.changed_flags = Some(flags.into());
                }
            }
            _ => {}
        }
        let moved = call.moved();
        if let Some(description) = description
            .filter(|_| call.kind.is_data() && call.succeeded())
            .and_then(|id| self.slots.get_mut(id.0 as usize)?.as_mut())
        {
            description.ios += 1;
            description.used_at_ns = call.ended_at_ns();
            description.end = call.offset.map(|offset| offset.saturating_add(moved));
            if call.kind == Kind::Write {
                description.written = description.written.saturating_add(moved);
            }
        }
    }
}
