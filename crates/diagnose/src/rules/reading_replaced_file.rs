//! `reading-replaced-file`: a reader stays on a file that no longer has its name.

use crate::prelude::*;
use crate::state::files::FileState;

/// Reads of the old file after the new one was written from which on they count.
const MIN_READS: u64 = 3;
/// Reads of the old file that go back in it or skip, from which on the reader does not just read on to its end.
const MIN_AGAIN: u64 = 10;
/// How long a reader must stay on the old file, nanoseconds; a reader that looks for a new one does
/// so sooner.
const MIN_STAY_NS: i64 = 500_000_000;
/// Times that a reader found more behind the end of a file, from which on it follows the file.
const MIN_FOLLOWED: u64 = 3;

static INFO: RuleInfo = RuleInfo {
    id: "reading-replaced-file",
    name: "Reading a file that was replaced",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Open, Read, Transfer],
    about_calls: false,
    what: "A log was rotated (renamed or removed, and a new one created under its path), or a table \
           was replaced, and a reader continues with the old file. It never sees the contents of \
           the new file.",
    when: "A process read a file under a path that now names another file with bytes in it, and \
           never opened the new one. After the bytes were written it read the old file (or sent it \
           with sendfile) three times or more and got nothing. Or it went back or skipped in the \
           old file in 10 or more reads, over half a second or more; a process that just reads on \
           to the end wants the old contents. Or it had followed the old file (three times or more \
           it found more data at the end), still has it open, and read nothing for the last half \
           second or more in which the new one was written.",
    cost: "",
    advice: "When a read returns nothing, compare device and inode of the path (stat) and of the descriptor (fstat), and open the path again if they differ; or watch the directory \
           with inotify. tail -F does this.",
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
    /// The number of the path.
    name: Option<u64>,
    /// Empty reads since the path has named a file with new bytes.
    stale: u64,
    now: Option<FileId>,
    /// End of the last read, when that was, and whether it gave nothing.
    end: i64,
    at_ns: i64,
    empty: bool,
    /// Times that there was more behind the end.
    followed: u64,
    follows: Examples,
    /// Reads since the path names another file that do not go on where the last one ended, and when the first was.
    again: u64,
    again_since_ns: i64,
    examples: Examples,
    opened_new: bool,
}

impl Reader {
    /// Whether it stays on its file, which `now` has replaced.
    fn stays(&self, now: &FileState, is_open: impl Fn() -> bool) -> bool {
        let since = |from: i64| self.at_ns.saturating_sub(from) >= MIN_STAY_NS;
        let waits = || now.last_change.is_some_and(|last| last.saturating_sub(self.at_ns) >= MIN_STAY_NS);
        self.stale >= MIN_READS
            || self.again >= MIN_AGAIN && since(self.again_since_ns)
            || self.followed >= MIN_FOLLOWED && now.written > 0 && waits() && is_open()
    }
}

rule! {
    pub struct ReadingReplacedFile {
        readers: Bounded<(i32, FileId), Reader>
            = Bounded::new(|reader| reader.stale + reader.again + reader.followed + 1),
    }
}

impl Rule for ReadingReplacedFile {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(file) = call.file.filter(|_| call.succeeded()) else { return };
        let key = (call.pid, file);
        if call.kind == Kind::Open {
            let Some(path) = call.path_key() else { return };
            if call.has_flag("O_WRONLY") {
                // It knows what it has written itself.
                self.readers.entry(key);
                return;
            }
            if let Some(old) = context.state.files.at_key(path).filter(|old| *old != file)
                && let Some(reader) = self.readers.get_mut(&(call.pid, old))
            {
                reader.opened_new = true;
            }
            // Under other names the old file may be what is wanted.
            *self.readers.entry(key) = Reader {
                comm: call.comm_text(),
                path: call.path_text(),
                name: Some(path),
                ..Reader::default()
            };
            return;
        }
        let Some(reader) = self.readers.get_mut(&key) else { return };
        let goes_on = call.offset.is_none_or(|offset| offset == reader.end);
        if reader.empty && goes_on && call.moved() > 0 {
            reader.followed += 1;
            reader.follows.add_first(call);
        }
        reader.end = call.offset.unwrap_or(reader.end).saturating_add(call.moved());
        reader.empty = call.moved() == 0;
        reader.at_ns = call.ended_at_ns();
        if goes_on && call.moved() > 0 {
            return;
        }
        let now = reader.name.and_then(|name| context.state.files.at_key(name));
        let Some(now) = now.filter(|now| *now != file) else { return };
        if !context.state.files.get(now).is_some_and(has_bytes) {
            return;
        }
        reader.now = Some(now);
        reader.examples.add_first(call);
        if call.moved() == 0 {
            reader.stale += 1;
            return;
        }
        if reader.again == 0 {
            reader.again_since_ns = call.ts_ns;
        }
        reader.again += 1;
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, file), reader) in self.readers.iter().filter(|(_, reader)| reader.at_ns > 0) {
            let latest = || run.state.files.at(&reader.path).filter(|now| now != file);
            let Some(now) = reader.now.or_else(latest) else { continue };
            let Some(new) = run.state.files.get(now).filter(|new| has_bytes(new)) else { continue };
            let is_open = || run.state.descriptors.open_in(*pid).any(|(_, open)| open.file == Some(*file));
            let ended = run.state.process(*pid).and_then(|process| process.ended_at_ns);
            let is_there = || new.last_change.is_none_or(|at| ended.is_none_or(|end| end >= at)) && is_open();
            if reader.opened_new || !reader.stays(new, is_there) {
                continue;
            }
            // Opened since, by whatever path.
            if self.readers.iter().any(|((p, f), _)| p == pid && *f == now) {
                continue;
            }
            out.push(Found {
                severity: Some(Severity::High),
                title: format!(
                    "{} keeps reading the old {} after it was replaced, and misses {} in the new one",
                    reader.comm,
                    reader.path,
                    units::bytes(new.written),
                ),
                subject: Subject::process(*pid, &reader.comm).with_file(*file, &reader.path),
                evidence: vec![
                    number("empty_reads", reader.stale as i64),
                    number("reads_of_old_bytes", reader.again as i64),
                    number("bytes_not_seen", new.written),
                ],
                examples: match reader.now {
                    Some(_) => reader.examples.list(),
                    None => reader.follows.list(),
                },
                query: calls!("file_id IN ({file}, {now}) AND (call_reads(syscall) OR call_writes(syscall) OR syscall LIKE 'open%')"),
                rests_on_absence: true,
                ..Found::default()
            });
        }
    }
}

/// Whether a reader that does not see the file misses something.
fn has_bytes(file: &FileState) -> bool {
    file.written > 0
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
        assert_eq!(found[0].evidence[2].value, 500.0);
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

    /// A table that is replaced while another process has it open.
    fn replaced(s: &mut Scenario) -> i32 {
        s.process(200);
        let table = s.open_existing("/data/rates", "O_RDONLY", 1 << 20);
        for i in 0..20 {
            s.pread(table, 4096, i * 37 % 256 * 4096);
        }
        s.process(100);
        let new = s.open("/data/rates.tmp", "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(new, 1 << 20);
        s.rename("/data/rates.tmp", "/data/rates");
        s.process(200);
        table
    }

    #[test]
    fn fires_on_a_server_that_keeps_sending_it() {
        let mut s = Scenario::new();
        let table = replaced(&mut s);
        for _ in 0..20 {
            s.lseek(table, 0);
            s.sendfile(table, 4096);
            s.wait_ms(50);
        }
        fires("reading-replaced-file", s);
    }

    #[test]
    fn fires_on_look_ups_in_a_table_that_was_replaced() {
        let mut s = Scenario::new();
        let table = replaced(&mut s);
        for i in 0..50 {
            s.pread(table, 4096, i * 37 % 256 * 4096);
            s.wait_ms(20);
        }
        let found = fires("reading-replaced-file", s);
        assert!(found[0].evidence[1].value > 10.0, "{found:?}");
    }

    #[test]
    fn silent_on_a_reader_that_reads_on_to_the_end() {
        let mut s = Scenario::new();
        let table = replaced(&mut s);
        for i in 0..256 {
            s.pread(table, 4096, i * 4096);
            s.wait_ms(20);
        }
        silent("reading-replaced-file", s);
    }

    fn followed(s: &mut Scenario) -> i32 {
        s.process(100);
        let log = s.open("/var/log/app", "O_WRONLY|O_CREAT|O_APPEND");
        s.process(200);
        let reader = s.open("/var/log/app", "O_RDONLY");
        for _ in 0..5 {
            s.process(100);
            s.write(log, 100);
            s.process(200);
            s.read(reader, 100);
            s.read_nothing(reader);
        }
        s.process(100);
        s.rename("/var/log/app", "/var/log/app.1");
        s.new_file("/var/log/app");
        let log = s.open("/var/log/app", "O_WRONLY|O_CREAT|O_APPEND");
        for _ in 0..10 {
            s.write(log, 100);
            s.wait_ms(100);
        }
        reader
    }

    #[test]
    fn fires_on_a_follower_that_waits_for_more() {
        let mut s = Scenario::new();
        followed(&mut s);
        fires("reading-replaced-file", s);
        let mut s = Scenario::new();
        let reader = followed(&mut s);
        s.process(200);
        s.close(reader);
        silent("reading-replaced-file", s);
    }
}
