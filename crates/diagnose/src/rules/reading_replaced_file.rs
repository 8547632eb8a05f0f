//! `reading-replaced-file`: a reader stays on a file that no longer has its name.

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::{Call, FileId};
use crate::finding::{Examples, Group, Severity, Subject};
use crate::kind::{Kind, Kinds};
use crate::rule::{Found, Input, Rule, RuleInfo, Run, number};
use crate::sql;
use crate::state::Context;
use crate::text::Text;

/// Reads of the old file after the new one was written from which on they count.
const MIN_READS: u64 = 3;

static INFO: RuleInfo = RuleInfo {
    id: "reading-replaced-file",
    name: "Reading a file that was replaced",
    group: Group::Correctness,
    needs: &[Input::Calls],
    about_calls: false,
    what: "A log was rotated (renamed or removed, and a new one created under its path), and a reader goes on with the old \
           file: what is written to the new one is not seen.",
    when: "A process read a file under a path that names another file now; after bytes were written to that other file the process \
           read the old one three times or more and got nothing, and it never opened the new one.",
    cost: "",
    advice: "When a read returns nothing, compare device and inode of the path (stat) with those of the descriptor (fstat), and \
             open anew when they differ; or watch the directory with inotify; tail -F does so.",
    not_when: "",
    bad: "for (;;) {\n    if (read(fd, buffer, n) == 0)\n        sleep(1);\n}",
    good: "for (;;) {\n    if (read(fd, buffer, n) == 0 && !same_inode(fd, path)) {\n        close(fd);\n        fd = open(path, O_RDONLY);\n    }\n}",
    reference: "DIO, section IV-B; logrotate(8), copytruncate",
};

/// A process that reads a file.
#[derive(Debug, Default)]
struct Reader {
    comm: Text,
    path: Text,
    /// Empty reads since the path names a file with new bytes.
    stale: u64,
    /// That file.
    now: Option<FileId>,
    examples: Examples,
    opened_new: bool,
}

/// The rule's state.
#[derive(Debug)]
pub struct ReadingReplacedFile {
    readers: Bounded<(i32, FileId), Reader>,
}

impl Default for ReadingReplacedFile {
    fn default() -> Self {
        Self {
            readers: Bounded::new(|reader| reader.stale + 1),
        }
    }
}

impl Rule for ReadingReplacedFile {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        Kinds::of(&[Kind::Open, Kind::Read])
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let Some(file) = call.file.filter(|_| call.succeeded()) else { return };
        let key = (call.pid, file);
        if call.kind == Kind::Open {
            let Some(path) = call.path_key().filter(|_| !call.has_flag("O_WRONLY")) else { return };
            if let Some(old) = context.state.files.at_key(path).filter(|old| *old != file)
                && let Some(reader) = self.readers.get_mut(&(call.pid, old))
            {
                reader.opened_new = true;
            }
            // Under other names the old file may be what is wanted.
            for id in [Some(file)].into_iter().flatten() {
                let reader = self.readers.entry((call.pid, id));
                reader.comm = call.comm_text();
                reader.path = call.path_text();
                reader.stale = 0;
                reader.opened_new = false;
            }
            return;
        }
        let Some(reader) = self.readers.get_mut(&key) else { return };
        if call.moved() > 0 {
            return;
        }
        let Some(now) = context.state.files.at(&reader.path).filter(|now| *now != file) else { return };
        if context.state.files.get(now).is_some_and(|f| f.written > 0) {
            reader.now = Some(now);
            reader.stale += 1;
            reader.examples.add_first(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, file), reader) in self.readers.iter() {
            let Some(now) = reader.now else { continue };
            // Opened since, by whatever path.
            let follows = self.readers.iter().any(|((p, f), _)| p == pid && *f == now);
            if reader.stale < MIN_READS || reader.opened_new || follows {
                continue;
            }
            let unseen = run.state.files.get(now).map_or(0, |f| f.written);
            out.push(Found {
                severity: Some(Severity::High),
                title: format!(
                    "{} keeps reading the file that was {} before it was replaced; {} in the new one are not seen",
                    reader.comm,
                    reader.path,
                    units::bytes(unseen),
                ),
                subject: Subject::process(*pid, &reader.comm).with_file(*file, &reader.path),
                evidence: vec![
                    number("empty_reads", reader.stale as i64),
                    number("bytes_not_seen", unseen),
                ],
                examples: reader.examples.list(),
                query: sql::calls(&format!(
                    "file_id IN ({}, {}) AND (call_reads(syscall) OR call_writes(syscall) OR syscall LIKE 'open%')",
                    file.0, now.0
                )),
                rests_on_absence: true,
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    fn rotated(s: &mut Scenario) -> i32 {
        s.process(200);
        let reader = s.open_existing("/var/log/app", "O_RDONLY", 100);
        s.read(reader, 100);
        s.process(100);
        s.rename("/var/log/app", "/var/log/app.1");
        let log = s.open("/var/log/app", "O_WRONLY|O_CREAT");
        s.write(log, 500);
        s.process(200);
        reader
    }

    #[test]
    fn fires_on_a_reader_that_stays() {
        let mut s = Scenario::new();
        let fd = rotated(&mut s);
        for _ in 0..5 {
            s.read_nothing(fd);
            s.wait_ms(200);
        }
        let found = fires("reading-replaced-file", s);
        assert_eq!(found[0].evidence[1].value, 500.0);
    }

    #[test]
    fn silent_when_it_opens_the_new_one() {
        let mut s = Scenario::new();
        let fd = rotated(&mut s);
        for _ in 0..3 {
            s.read_nothing(fd);
        }
        let fd = s.open_existing("/var/log/app", "O_RDONLY", 500);
        s.read(fd, 500);
        silent("reading-replaced-file", s);
    }
}
