//! `non-atomic-rewrite`: a file is emptied and rewritten in place.

use std::collections::BTreeMap;

use crate::names::{is_journal, is_pid_or_lock, is_rebuilt};
use crate::prelude::*;

/// Times that one file is rewritten from which on it is data that lives.
const MIN_REWRITES: u64 = 2;

static INFO: RuleInfo = RuleInfo {
    id: "non-atomic-rewrite",
    name: "File emptied and rewritten in place",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Open, Truncate, Read, Write, Sync, Flock, Fcntl, Close],
    about_calls: true,
    what: "A process empties a file that has contents (O_TRUNC, ftruncate to 0) and writes the new \
           contents into it. A crash, a full disk, or a kill in between leaves the file empty or \
           half-written, and the old contents are lost.",
    when: "A process empties a file that contained bytes, written in the recording or present when \
           first seen, and writes it again, twice or more; a file that is rewritten once may be the \
           result of a build. Processes that do so once each count together if they had opened the \
           file for reading before: they load, change, and save it. Once is enough if the process \
           had read all of the file, the file existed before, the new contents take two writes or \
           more (so that a kill can come in between), and nothing made them durable until the end: \
           the file is then the source of its own contents and cannot be made again from other \
           data. The rule is silent if the process has the file locked (flock, F_SETLK), because \
           others wait for this very file; if the empty file is made durable before it is written, \
           as in a journal that ends by being emptied; if the new contents are made durable piece \
           by piece; or if ftruncate empties a file opened with O_APPEND, which is a log that \
           starts over. It is also silent for files without a name (O_TMPFILE, unlinked by the \
           end), names of files that can be made again (`cache`) or that mark a running process \
           (pid and lock files), and file systems in memory.",
    cost: "",
    advice: "Write a new file in the same directory, fsync it, rename it onto the old one, and \
           fsync the directory.",
    not_when: "Not when the file can be made again, or when its inode must stay the same (other \
           processes hold it open).",
    bad: "FILE *f = fopen(\"settings.json\", \"w\");\nfputs(text, f);\nfclose(f);",
    good: "FILE *f = fopen(\"settings.json.tmp\", \"w\");\nfputs(text, f);\nfflush(f);\nfsync(fileno(f));\nfclose(f);\n\
           rename(\"settings.json.tmp\", \"settings.json\");",
    reference: "ALICE, OSDI 2014; ext4's auto_da_alloc exists because of this pattern",
};

/// One process on one file.
#[derive(Debug, Default)]
struct Rewrites {
    comm: Text,
    /// Emptied with so much in it by this call, and neither written nor made durable since.
    emptied: Option<(i64, Example)>,
    /// Since it was rewritten: syncs with writes before them, and whether one was written since
    /// the last.
    syncs: u64,
    unsynced: bool,
    rewrites: u64,
    lost_bytes: i64,
    /// Whether the process had opened it to read it, and whether it had read all of it.
    loaded: bool,
    source: bool,
    /// Writes since it was emptied last.
    writes: u64,
    examples: Examples,
}

impl Rewrites {
    fn writes(&mut self) {
        self.unsynced = true;
        self.writes += 1;
        if let Some((had, example)) = self.emptied.take() {
            self.rewrites += 1;
            self.lost_bytes = self.lost_bytes.max(had);
            self.examples.keep(example);
            self.syncs = 0;
            self.writes = 1;
        }
    }

    fn made_durable(&mut self) {
        self.emptied = None;
        if std::mem::take(&mut self.unsynced) {
            self.syncs += 1;
            // A log, whose entries are made durable one after the other.
            if self.syncs == 2 {
                self.rewrites = self.rewrites.saturating_sub(1);
            }
        }
    }
}

rule! {
    pub struct NonAtomicRewrite {
        files: Bounded<(i32, FileId), Rewrites> = Bounded::new(|rewrites| rewrites.rewrites),
        /// Files that a process opened to read them, and the bytes that it has read.
        loaded: Bounded<(i32, FileId), i64>,
        /// Files that a process has locked.
        locked: Bounded<(i32, FileId), bool>,
        /// Length of a file before it was emptied, as the writes that were seen tell.
        length: Bounded<FileId, i64>,
    }
}

impl Rule for NonAtomicRewrite {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(id) = call.file.filter(|_| call.succeeded()) else { return };
        // A database commits by emptying its journal: the bytes are meant to go.
        if call.path.is_some_and(is_journal) {
            return;
        }
        if call.kind == Kind::Write {
            if let Some((_, end)) = call.range() {
                let length = self.length.entry(id);
                *length = (*length).max(end);
            }
            if let Some(rewrites) = self.files.get_mut(&(call.pid, id)) {
                rewrites.writes();
            }
            return;
        }
        if call.kind == Kind::Sync {
            if let Some(rewrites) = self.files.get_mut(&(call.pid, id)) {
                rewrites.made_durable();
            }
            return;
        }
        match call.kind {
            Kind::Read => {
                if let Some(read) = self.loaded.get_mut(&(call.pid, id)) {
                    *read += call.moved();
                }
                return;
            }
            Kind::Flock | Kind::Fcntl | Kind::Close => {
                if call.takes_lock() {
                    *self.locked.entry((call.pid, id)) = true;
                } else if call.kind == Kind::Close || call.gives_up_lock() {
                    self.locked.remove(&(call.pid, id));
                }
                return;
            }
            _ => {}
        }
        let empties = match call.kind {
            Kind::Open => call.has_flag("O_TRUNC"),
            _ => call.arg("length") == Some("0"),
        };
        if !empties {
            if call.kind == Kind::Open && !call.has_flag("O_WRONLY") {
                self.loaded.entry((call.pid, id));
            }
            return;
        }
        let written = self.length.remove(&id).unwrap_or(0);
        let file = context.file(call);
        // The size of a file when first seen is its size after this open, if this was the first
        // one.
        let known = file.and_then(|f| f.size).unwrap_or(0);
        let fit = file.is_some_and(|f| f.is_regular() && !f.is_volatile() && !f.unlinked);
        let had = written.max(known);
        let log = call.kind == Kind::Truncate && context.open().and_then(|open| open.opened_with("O_APPEND")) == Some(true);
        let path = file.map_or("", |f| f.name());
        let expendable = is_rebuilt(path) || is_pid_or_lock(path);
        if had == 0 || !fit || log || expendable || self.locked.get(&(call.pid, id)).is_some() {
            return;
        }
        let read = self.loaded.get(&(call.pid, id)).copied();
        let rewrites = self.files.entry((call.pid, id));
        call.name_thread(&mut rewrites.comm);
        rewrites.loaded |= read.is_some();
        rewrites.source = written == 0 && read.is_some_and(|read| read >= had);
        rewrites.emptied = Some((had, Example::of(call)));
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let mut together: BTreeMap<(FileId, &str), Vec<(i32, &Rewrites)>> = BTreeMap::new();
        for ((pid, file), rewrites) in self.files.iter() {
            // Files that are gone by now were not meant to last.
            if run.state.files.get(*file).is_some_and(|f| f.unlinked) {
                continue;
            }
            let unsynced = || run.state.files.get(*file).is_some_and(|f| !f.was_synced());
            let source = rewrites.rewrites == 1 && rewrites.source && rewrites.writes > 1 && unsynced();
            if rewrites.rewrites >= MIN_REWRITES || source {
                out.push(found(run, Some(*pid), *file, &[(*pid, rewrites)]));
            } else if rewrites.rewrites > 0 && rewrites.loaded {
                together.entry((*file, &rewrites.comm)).or_default().push((*pid, rewrites));
            }
        }
        for ((file, _), mut all) in together.into_iter().filter(|(_, all)| all.len() as u64 >= MIN_REWRITES) {
            all.sort_by_key(|(pid, _)| *pid);
            out.push(found(run, None, file, &all));
        }
    }
}

/// The writes of a process, or of several of one program, to a file.
fn found(run: &Run, pid: Option<i32>, file: FileId, all: &[(i32, &Rewrites)]) -> Found {
    let path = run.state.files.get(file).map_or("", |f| f.name());
    let comm = all.first().map_or("", |(_, rewrites)| &*rewrites.comm);
    let times: u64 = all.iter().map(|(_, rewrites)| rewrites.rewrites).sum();
    let lost_bytes = all.iter().map(|(_, rewrites)| rewrites.lost_bytes).max().unwrap_or(0);
    let condition = pid.map_or_else(|| format!("comm = {}", sql::quote(comm)), |pid| format!("pid = {pid}"));
    Found {
        severity: Some(Severity::Medium),
        title: format!(
            "{comm} empties {path} and writes it again{}: a crash in between would lose up to {}",
            match times {
                1 => String::new(),
                n => format!(" {} times", units::count(n as i64)),
            },
            units::bytes(lost_bytes),
        ),
        subject: Subject {
            pid,
            comm: (!comm.is_empty()).then(|| comm.to_owned()),
            ..Subject::default()
        }
        .with_file(file, path),
        evidence: vec![number("rewrites", times as i64), number("bytes_at_stake", lost_bytes)],
        examples: all.iter().flat_map(|(_, rewrites)| rewrites.examples.list()).take(EXAMPLES).collect(),
        query: calls!("{condition} AND file_id = {file} AND (flags LIKE '%O_TRUNC%' OR syscall = 'ftruncate' OR call_writes(syscall))"),
        ..Found::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn silent_on_a_journal_that_is_emptied_to_commit() {
        let rewrites = |path: &str| {
            let mut s = Scenario::new();
            let fd = s.open_existing(path, "O_RDWR", 8192);
            for _ in 0..20 {
                s.pwrite(fd, 8192, 0);
                s.truncate(fd, 0);
            }
            s
        };
        silent("non-atomic-rewrite", rewrites("/data/app.db-journal"));
    }

    #[test]
    fn fires_on_settings_saved_in_place() {
        let mut s = Scenario::new();
        for _ in 0..4 {
            let fd = s.open("/home/settings.json", "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 700);
            s.close(fd);
        }
        let found = fires("non-atomic-rewrite", s);
        // The first one made the file.
        assert_eq!(found[0].evidence[0].value, 3.0);
    }

    #[test]
    fn processes_that_load_change_and_save_count_together() {
        let saves = |loads: bool| {
            let mut s = Scenario::new();
            for pid in 200..205 {
                s.process(pid);
                if loads {
                    let fd = s.open_existing("/home/state.json", "O_RDONLY", 700);
                    s.read(fd, 700);
                    s.close(fd);
                }
                let fd = s.open_existing("/home/state.json", "O_WRONLY|O_CREAT|O_TRUNC", 700);
                s.write(fd, 700);
                s.close(fd);
            }
            s
        };
        let found = fires("non-atomic-rewrite", saves(true));
        assert_eq!((found.len(), found[0].evidence[0].value), (1, 5.0));
        // The results of builds.
        silent("non-atomic-rewrite", saves(false));
    }

    /// As cp and copy-file of gnulib write.
    #[test]
    fn copies_by_the_kernel_write() {
        let mut s = Scenario::new();
        let from = s.open_existing("/tmp/new", "O_RDONLY", 1 << 20);
        for _ in 0..4 {
            let fd = s.open_existing("/home/books.rec", "O_WRONLY|O_CREAT|O_TRUNC", 700);
            s.copy_range(from, fd, 800);
            s.close(fd);
        }
        let found = fires("non-atomic-rewrite", s);
        assert_eq!(found[0].subject.path.as_deref(), Some("/home/books.rec"));
    }

    #[test]
    fn silent_on_a_temporary_beside_it_and_on_results() {
        let mut s = Scenario::new();
        for i in 0..4 {
            let fd = s.open("/home/settings.tmp", "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 700);
            s.fsync(fd);
            s.close(fd);
            s.rename("/home/settings.tmp", "/home/settings.json");
            let fd = s.open(&format!("/build/{i}.o"), "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 700);
            s.close(fd);
        }
        silent("non-atomic-rewrite", s);
    }

    #[test]
    fn silent_on_a_journal_that_ends_with_its_emptying() {
        let mut s = Scenario::new();
        for _ in 0..4 {
            let fd = s.open("/data/db-journal", "O_RDWR|O_CREAT");
            s.write(fd, 8720);
            s.fsync(fd);
            s.truncate(fd, 0);
            s.fsync(fd);
            s.close(fd);
        }
        silent("non-atomic-rewrite", s);
    }

    #[test]
    fn silent_on_a_log_that_begins_anew() {
        // Each entry is made durable; once in a while all of them are elsewhere.
        for flags in ["O_RDWR|O_CREAT", "O_RDWR|O_CREAT|O_APPEND"] {
            let mut s = Scenario::new();
            let fd = s.open("/data/wal", flags);
            for _ in 0..4 {
                for i in 0..5 {
                    s.pwrite(fd, 700, i * 700);
                    s.fdatasync(fd);
                }
                s.truncate(fd, 0);
            }
            silent("non-atomic-rewrite", s);
        }
    }

    #[test]
    fn fires_on_emptying_by_ftruncate() {
        let mut s = Scenario::new();
        let fd = s.open("/data/state", "O_RDWR|O_CREAT");
        for _ in 0..4 {
            s.truncate(fd, 0);
            s.pwrite(fd, 700, 0);
            s.fsync(fd);
        }
        let found = fires("non-atomic-rewrite", s);
        assert_eq!(found[0].evidence[0].value, 3.0);
    }

    #[test]
    fn silent_on_files_without_a_name() {
        let mut s = Scenario::new();
        let nameless = s.open("/tmp/#17", "O_RDWR|O_TRUNC|O_TMPFILE");
        let removed = s.open("/tmp/scratch", "O_RDWR|O_CREAT|O_EXCL");
        s.unlink("/tmp/scratch");
        for fd in [nameless, removed] {
            for _ in 0..4 {
                s.truncate(fd, 0);
                s.pwrite(fd, 700, 0);
            }
        }
        silent("non-atomic-rewrite", s);
        let mut s = Scenario::new();
        for _ in 0..4 {
            let fd = s.open("/tmp/tmpx1/probe", "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 700);
            s.close(fd);
        }
        s.unlink("/tmp/tmpx1/probe");
        silent("non-atomic-rewrite", s);
    }

    /// A process reads so much of a file of 700,000 bytes, and writes it again in so many pieces.
    fn sorts(path: &str, read: i64, writes: i64) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open_existing(path, "O_RDONLY", 700_000);
        s.read(fd, read);
        s.close(fd);
        let fd = s.open_existing(path, "O_WRONLY|O_TRUNC", 700_000);
        for _ in 0..writes {
            s.write(fd, 700_000 / writes);
        }
        s
    }

    #[test]
    fn once_is_enough_of_what_is_made_from_itself() {
        let found = fires("non-atomic-rewrite", sorts("/home/known", 700_000, 7));
        assert!(found[0].title.starts_with("program empties /home/known and writes it again: a crash"), "{}", found[0].title);
        // Looked at only, written at once, durable, or known to be made again.
        silent("non-atomic-rewrite", sorts("/home/known", 4096, 7));
        silent("non-atomic-rewrite", sorts("/home/known", 700_000, 1));
        silent("non-atomic-rewrite", sorts("/home/.cache/known", 700_000, 7));
        let mut s = sorts("/home/known", 700_000, 7);
        let fd = s.open("/home/known", "O_WRONLY");
        s.fsync(fd);
        silent("non-atomic-rewrite", s);
    }

    #[test]
    fn silent_on_a_file_that_is_locked_itself() {
        let saves = |locks: bool| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/sessions/1", "O_RDWR|O_CREAT", 700);
            for _ in 0..4 {
                if locks {
                    s.flock(fd, 1_000);
                }
                s.pread(fd, 700, 0);
                s.truncate(fd, 0);
                s.pwrite(fd, 700, 0);
            }
            s
        };
        fires("non-atomic-rewrite", saves(false));
        silent("non-atomic-rewrite", saves(true));
    }
}
