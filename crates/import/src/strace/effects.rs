//! Effects of calls: on descriptors, positions, directories, names.

use std::cell::RefCell;
use std::rc::Rc;

use fathom_model::escape::shell_words;
use fathom_model::kind::Kind;
use fathom_model::syscalls::{Arg, Syscall};

use super::Reader;
use super::call::{self, kind_of_name, mode_kind, moves_position, offset_may_be_none, pointed};
use super::line::find;
use super::tasks::{Description, Pending, Shared, Task, clone_flags};
use super::value::{Answer, descriptor, integer, split_unfinished, string};
use crate::builder::Call;

/// With -y every AT_FDCWD shows the thread's directory.
pub(super) fn learn_directory(task: &Task, known: &Syscall, args: &[&[u8]]) {
    for role in [Arg::Dirfd, Arg::Dirfd2] {
        let arg = known.position(role).and_then(|at| args.get(at));
        if let Some((-100, Some(path))) = arg.and_then(|a| descriptor(a)) {
            *task.cwd.borrow_mut() = Some(path);
        }
    }
}

/// Devices do not have positions like files, and what is below /dev is one as a
/// rule.
fn has_position(path: Option<&[u8]>) -> bool {
    path.is_some_and(|p| {
        p.starts_with(b"/") && !p.starts_with(b"/dev/") || p.starts_with(b"/dev/shm/")
    })
}

impl Reader<'_> {
    /// A call that moves a position has begun, and others may come before it
    /// ends.
    pub(super) fn begins_to_move(
        &mut self,
        tid: i32,
        ns: i64,
        name: &[u8],
        text: &[u8],
    ) -> Option<(Shared, u64)> {
        let known = call::known(name).filter(|k| moves_position(k))?;
        let args = split_unfinished(text);
        let at = known.position(Arg::Fd)?;
        let (fd, _) = descriptor(args.get(at)?)?;
        let description = self.tasks.get(tid, ns).description(fd)?;
        let disturbed = {
            let mut d = description.borrow_mut();
            d.moving += 1;
            if d.moving > 1 {
                d.disturbed += 1;
                d.position = None;
            }
            d.disturbed
        };
        Some((description, disturbed))
    }

    /// Where the call took place, and where its descriptors stand behind it.
    pub(super) fn place(
        &mut self,
        tid: i32,
        known: &Syscall,
        args: &[&[u8]],
        pending: Option<&Pending>,
        row: &mut Call,
    ) {
        let Some(task) = self.tasks.known(tid) else {
            return;
        };
        let Some(description) = row.fd.and_then(|fd| task.description(fd)) else {
            self.second_moves(tid, known, args, row);
            return;
        };
        let certain = {
            let mut d = description.borrow_mut();
            match pending.and_then(|p| p.moves.as_ref()) {
                Some((own, disturbed)) if Rc::ptr_eq(own, &description) => {
                    d.moving = d.moving.saturating_sub(1);
                    d.disturbed == *disturbed
                }
                _ if d.moving > 0 && moves_position(known) => {
                    d.disturbed += 1;
                    d.position = None;
                    false
                }
                _ => true,
            }
        };
        let position = description
            .borrow()
            .position
            .filter(|_| certain && self.positions);
        let moved = row.bytes.unwrap_or(0);
        let failed = row.ret.is_none_or(|r| r < 0);
        let append = description.borrow().append && known.writes();
        let pointer = known.position(Arg::OffsetPtr).and_then(|at| args.get(at));
        let own_position = known.uses_position()
            || offset_may_be_none(known) && row.offset == Some(-1)
            || pointer.is_some_and(|p| *p == b"NULL");
        if own_position {
            row.offset = position.filter(|_| !append || failed);
            description.borrow_mut().position = match position {
                Some(at) if !append || failed => at.checked_add(moved),
                _ => None,
            };
        } else if append && !failed {
            // The kernel takes no notice of the offset that was passed.
            row.offset = None;
        }
        match known.kind {
            Kind::Seek if !failed => {
                let device = !has_position(description.borrow().path.as_deref());
                description.borrow_mut().position = row.ret.filter(|_| certain && !device);
            }
            Kind::ReadDir => description.borrow_mut().position = None,
            _ => {}
        }
        self.second_moves(tid, known, args, row);
    }

    /// The position of the descriptor that data goes to.
    fn second_moves(&mut self, tid: i32, known: &Syscall, args: &[&[u8]], row: &mut Call) {
        let Some(task) = self.tasks.known(tid) else {
            return;
        };
        let at = |role: Arg| known.position(role).and_then(|i| args.get(i)).copied();
        let Some((fd, _)) = at(Arg::Fd2).and_then(descriptor) else {
            return;
        };
        let Some(description) = task.description(fd) else {
            return;
        };
        let by_pointer = at(Arg::OffsetPtr2).and_then(pointed).is_some();
        if by_pointer {
            return;
        }
        let mut d = description.borrow_mut();
        if let (Some(position), true, true) = (
            d.position,
            self.positions && !d.append,
            known.position(Arg::OffsetPtr2).is_some(),
        ) {
            row.args.push_str(&format!(", off_out={position}"));
        }
        let moved = row.bytes.unwrap_or(0);
        d.position = match d.position {
            Some(at) if !d.append && d.moving == 0 => at.checked_add(moved),
            _ => None,
        };
    }

    /// The effects of a storage call.
    pub(super) fn effects(&mut self, tid: i32, known: &Syscall, args: &[&[u8]], row: &Call) {
        let Some(ret) = row.ret else {
            return;
        };
        if known.kind == Kind::Close
            && ret != -9
            && let (Some(task), Some(fd)) = (self.tasks.known(tid), row.fd)
        {
            task.close(fd);
        }
        if ret < 0 && known.kind != Kind::Mmap {
            return;
        }
        let flags = row.flags.as_deref().unwrap_or("");
        let has = |flag: &str| flags.split('|').any(|f| f == flag);
        let new_fd = i32::try_from(ret).unwrap_or(-1);
        match known.kind {
            Kind::Rename => {
                if let (Some(from), Some(to)) = (&row.path, &row.path2) {
                    if has("RENAME_EXCHANGE") {
                        self.builder.removed(from);
                        self.builder.removed(to);
                    } else {
                        self.builder.renamed(from, to, row.ts_ns);
                    }
                }
                return;
            }
            Kind::Unlink | Kind::Rmdir => {
                if let Some(path) = &row.path {
                    self.builder.removed(path);
                }
                return;
            }
            Kind::Stat | Kind::Statfs if known.position(Arg::Fd).is_some() => {
                let kind = args.iter().find_map(|a| mode_kind(a));
                if let (Some(kind), Some(id)) = (kind, row.file_id) {
                    self.builder.kind(id, kind);
                    if kind != "regular" && kind != "directory" && kind != "block" {
                        self.forget(tid, row.fd);
                    }
                }
                return;
            }
            _ => {}
        }
        let Some(task) = self.tasks.known(tid) else {
            return;
        };
        match known.kind {
            Kind::Open => {
                let description = Description {
                    position: has_position(row.path.as_deref()).then_some(0),
                    append: has("O_APPEND"),
                    path: row.path.clone(),
                    file_id: row.file_id,
                    ..Description::default()
                };
                task.install(new_fd, Rc::new(RefCell::new(description)), has("O_CLOEXEC"));
            }
            Kind::Dup
                // A duplicate of itself changes nothing.
                if Some(new_fd) != row.fd => {
                    duplicate(task, row.fd, new_fd, has("O_CLOEXEC"));
                }
            Kind::Fcntl => fcntl(task, args, row.fd, new_fd),
            Kind::CloseRange => {
                let at = |i: usize| args.get(i).and_then(|a| integer(a));
                let limit = |n: i64| i32::try_from(n).unwrap_or(i32::MAX);
                if let (Some(first), Some(last)) = (at(0), at(1)) {
                    task.close_range(limit(first), limit(last), has("CLOSE_RANGE_CLOEXEC"));
                }
            }
            Kind::Chdir => {
                *task.cwd.borrow_mut() = row.path.clone();
            }
            // Operations may move positions without any call.
            _ if known.name == "io_uring_enter" => task.forget_positions(),
            _ => {}
        }
    }

    fn forget(&self, tid: i32, fd: Option<i32>) {
        let description = self.tasks.known(tid).and_then(|task| task.description(fd?));
        if let Some(description) = description {
            description.borrow_mut().position = None;
        }
    }

    /// The effects of a call that gets no row.
    pub(super) fn effects_of_other(
        &mut self,
        tid: i32,
        ns: i64,
        name: &[u8],
        args: &[&[u8]],
        answer: &Answer,
        text: &[u8],
    ) {
        let task = self.tasks.get(tid, ns);
        let ret = match answer.ret {
            Some(ret) if ret >= 0 => ret,
            _ => return,
        };
        if let Some(flags) = clone_flags(name, text) {
            // If two of them move it at once, the position is unknown from then on.
            if self.several && flags.files {
                self.positions = false;
            } else if self.several {
                task.forget_positions();
            }
            if let Ok(child) = i32::try_from(ret) {
                self.tasks.cloned(tid, child, flags, ns);
            }
            return;
        }
        match name {
            b"execve" | b"execveat" => {
                let at = usize::from(name == b"execveat");
                let path = args.get(at).and_then(|a| string(a));
                let words = args.get(at + 1).and_then(|a| call::words(a));
                task.exec();
                task.info.pid = Some(tid);
                if let Some(path) = &path {
                    let base = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
                    // As long a name as the kernel keeps.
                    task.info.comm = Some(base.get(..15).unwrap_or(base).to_vec());
                }
                task.info.cmdline = words.as_ref().map(|words| shell_words(words).into_bytes());
                let cwd = task.cwd.borrow().clone();
                task.info.exe = path.and_then(|p| crate::text::absolute(cwd.as_deref(), &p));
                if let (None, Some(words)) = (&self.command, words) {
                    let text = |word: Vec<u8>| String::from_utf8_lossy(&word).into_owned();
                    self.command = Some(words.into_iter().map(text).collect());
                }
            }
            b"prctl" if args.first() == Some(&&b"PR_SET_NAME"[..]) => {
                if let Some(name) = args.get(1).and_then(|a| string(a)) {
                    task.info.comm = Some(name.get(..15).unwrap_or(&name).to_vec());
                }
            }
            b"unshare" if find(text, b"CLONE_FILES").is_some() => task.unshare_files(),
            b"memfd_create" => {
                let path = answer.path.clone();
                let file_id = path
                    .as_deref()
                    .map(|p| self.builder.file(p, kind_of_name(p), ns));
                let description = Description {
                    position: Some(0),
                    path,
                    file_id,
                    ..Description::default()
                };
                let on_exec = find(text, b"MFD_CLOEXEC").is_some();
                let fd = i32::try_from(ret).unwrap_or(-1);
                task.install(fd, Rc::new(RefCell::new(description)), on_exec);
            }
            // Descriptors go to processes that may not be in the log.
            b"sendmsg" | b"sendmmsg" if find(text, b"SCM_RIGHTS").is_some() => {
                task.forget_positions();
            }
            _ => {}
        }
    }
}

fn duplicate(task: &Task, from: Option<i32>, to: i32, on_exec: bool) {
    match from.and_then(|fd| task.description(fd)) {
        Some(description) => task.install(to, description, on_exec),
        None => task.close(to),
    }
}

fn fcntl(task: &Task, args: &[&[u8]], fd: Option<i32>, ret: i32) {
    let (command, value) = (args.get(1).copied(), args.get(2).copied());
    match command {
        Some(b"F_DUPFD") => duplicate(task, fd, ret, false),
        Some(b"F_DUPFD_CLOEXEC") => duplicate(task, fd, ret, true),
        Some(b"F_SETFD") => {
            if let (Some(fd), Some(value)) = (fd, value) {
                task.close_on_exec(fd, find(value, b"FD_CLOEXEC").is_some());
            }
        }
        Some(b"F_SETFL") => {
            if let (Some(description), Some(value)) = (fd.and_then(|f| task.description(f)), value)
            {
                description.borrow_mut().append = find(value, b"O_APPEND").is_some();
            }
        }
        _ => {}
    }
}
