//! `rotation-offset`: a reader of a rotated log begins in the middle of the new file.

use crate::prelude::*;

/// Empty reads beyond the end from which on they count.
const MIN_EMPTY: u64 = 2;
/// A reader of whole blocks begins at a multiple of this, at most so far before the place where it had stopped.
const BLOCK: i64 = 512;
const MAX_BEFORE: i64 = 4096;
/// Bytes behind that place from which on it goes on there, rather than that it reads the end of any file.
const MIN_BEHIND: i64 = 128 << 10;

static INFO: RuleInfo = RuleInfo {
    id: "rotation-offset",
    name: "New file read from an old offset",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Open, Read, Write],
    about_calls: false,
    what: "A path names a new file (a log was rotated, or removed and created), and a process that \
           had read the old file starts to read the new one at the offset where it had stopped in \
           the old one. The bytes before that offset are never read; if the new file is shorter, \
           every read returns nothing.",
    when: "A process opens a path that names another file than when it opened the path before. The \
           same holds if an earlier process opened the path and read the old file to its end: a log \
           shipper that was restarted, or that starts a new process each time. The first read of \
           the new file starts at an offset other than 0 that is the end of the part read of the \
           old one (or the start of the block that contains this end, with 128 KiB or more behind it), or beyond the end of the new one (with two or more empty reads there while the \
           file has unread bytes). Silent if the process then reads bytes in front of that offset. \
           Files that the process writes itself do not count.",
    cost: "",
    advice: "Store the position together with the identity of the file: device, inode, and a \
           property that a recycled inode number does not share (creation time from statx, a hash \
           of the first bytes). Start at 0 when the identity changes or the file has become \
           shorter.",
    not_when: "",
    bad: "offset = saved_offset(path);           /* or by inode number alone */\nlseek(fd, offset, SEEK_SET);",
    good: "if (!same_file(saved, fd) || st.st_size < saved.offset)\n    saved.offset = 0;\nlseek(fd, saved.offset, SEEK_SET);",
    reference: "Fluent Bit issues 1875 and 4895; DIO, section IV-B",
};

/// The reads of a process by path.
#[derive(Debug, Default)]
struct Reader {
    comm: Text,
    path: Text,
    file: Option<FileId>,
    /// End of what it has read of the file, and whether that was all that there was.
    end: i64,
    all: bool,
    /// The file before, and the end of what was read of it.
    before: Option<(FileId, i64)>,
    /// Reads of the new file so far, and how many of them returned nothing.
    reads: u64,
    empty: u64,
    /// Whether it writes the file itself: then it is no reader of another's log.
    own: bool,
    /// Where the first one began, or a later one that returned bytes in front of it.
    first: Option<i64>,
    first_examples: Examples,
    /// The skipped ranges.
    skipped: Option<Skipped>,
}

#[derive(Clone, Debug)]
struct Skipped {
    file: FileId,
    offset: i64,
    empty: u64,
    examples: Examples,
}

rule! {
    pub struct RotationOffset {
        readers: Bounded<(i32, u64), Reader>
            = Bounded::new(|reader| 1 + u64::from(reader.skipped.is_some()) * 1000),
        /// By which path a process reads a file.
        paths: Bounded<(i32, FileId), u64>,
        /// Which process opened a path last to read it.
        last: Bounded<u64, Option<i32>>,
    }
}

impl Rule for RotationOffset {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(file) = call.file.filter(|_| call.succeeded()) else { return };
        if call.kind == Kind::Open {
            let Some(key) = call.path_key().filter(|_| !call.has_flag("O_WRONLY")) else { return };
            // Another process may go on where this one or one before it had stopped.
            let last = self.last.entry(key);
            let before = last.replace(call.pid).filter(|pid| *pid != call.pid);
            let known = self.readers.get(&(call.pid, key)).is_some_and(|r| r.file.is_some());
            let inherited = before.filter(|_| !known).and_then(|pid| {
                let other = self.readers.get(&(pid, key)).filter(|r| !r.own)?;
                Some((other.file?, other.end, other.all))
            });
            let reader = self.readers.entry((call.pid, key));
            if let Some((old, end, all)) = inherited {
                if old == file {
                    (reader.end, reader.all) = (end, all);
                } else if end > 0 && (all || context.state.files.get(old).and_then(|f| f.size) == Some(end)) {
                    // Only who had read all of it knows where to go on.
                    (reader.file, reader.end) = (Some(old), end);
                    reader.comm = call.comm_text();
                    reader.path = call.path_text();
                }
            }
            if reader.file.is_none() {
                reader.comm = call.comm_text();
                reader.path = call.path_text();
            }
            if reader.file != Some(file) {
                reader.before = reader.file.map(|old| (old, reader.end));
                reader.end = match reader.file.replace(file) {
                    // The part of this file that another process had read.
                    None => reader.end,
                    Some(_) => 0,
                };
                (reader.reads, reader.empty, reader.first) = (0, 0, None);
                reader.own = false;
                reader.first_examples = Examples::default();
            }
            *self.paths.entry((call.pid, file)) = key;
            return;
        }
        let Some(key) = self.paths.get_mut(&(call.pid, file)).map(|key| *key) else { return };
        let Some(reader) = self.readers.get_mut(&(call.pid, key)) else { return };
        let (Some(offset), true) = (call.offset, reader.file == Some(file)) else { return };
        reader.own |= call.kind == Kind::Write;
        if reader.own {
            return;
        }
        reader.end = reader.end.max(offset.saturating_add(call.moved()));
        reader.all = context.file(call).and_then(|file| file.size) == Some(reader.end);
        let Some((_, old_end)) = reader.before else { return };
        reader.reads += 1;
        reader.first_examples.add_first(call);
        let mut first = *reader.first.get_or_insert(offset);
        if offset < first && call.moved() > 0 {
            first = offset;
            reader.first = Some(offset);
            // It has noticed, and the bytes are read.
            if reader.skipped.as_ref().is_some_and(|skipped| skipped.file == file) {
                reader.skipped = None;
            }
        }
        if call.moved() == 0 {
            reader.empty += 1;
        }
        let size = context.file(call).and_then(|file| file.size);
        let in_block = first % BLOCK == 0 && (1..MAX_BEFORE).contains(&(old_end - first));
        let goes_on = in_block && size.is_some_and(|size| size - first >= MIN_BEHIND);
        let carried_over = first > 0 && (first == old_end || goes_on);
        let beyond = first > 0
            && reader.empty >= MIN_EMPTY
            && reader.empty == reader.reads
            && size.is_some_and(|size| size < first);
        if carried_over || beyond {
            reader.skipped = Some(Skipped {
                file,
                offset: first,
                empty: reader.empty,
                examples: reader.first_examples.clone(),
            });
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, _), reader) in self.readers.iter() {
            let Some(skipped) = &reader.skipped else { continue };
            let written = run.state.files.get(skipped.file).map_or(0, |f| f.written);
            out.push(Found {
                severity: Some(Severity::High),
                title: format!(
                    "{} starts to read the new {} at byte {}, where it had stopped in the old one: the bytes before are \
                     never read",
                    reader.comm,
                    reader.path,
                    units::count(skipped.offset),
                ),
                subject: Subject::process(*pid, &reader.comm).with_file(skipped.file, &reader.path),
                evidence: vec![
                    number("file_offset", skipped.offset),
                    number("empty_reads", skipped.empty as i64),
                    number("bytes_written_to_new_file", written),
                ],
                examples: skipped.examples.list(),
                query: calls!("path = {} AND (call_reads(syscall) OR call_writes(syscall) OR syscall LIKE 'open%' OR syscall = 'lseek')", sql::quote(&reader.path)),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    /// Writes a log, has it read, and puts another in its place.
    fn rotated(s: &mut Scenario) {
        let log = s.open("/var/log/app", "O_WRONLY|O_CREAT");
        s.write(log, 26);
        s.close(log);
        s.process(200);
        let fd = s.open_existing("/var/log/app", "O_RDONLY", 26);
        s.read(fd, 26);
        s.close(fd);
        s.process(100);
        s.unlink("/var/log/app");
        s.new_file("/var/log/app");
        let log = s.open("/var/log/app", "O_WRONLY|O_CREAT");
        s.write(log, 16);
        s.close(log);
        s.process(200);
    }

    #[test]
    fn fires_when_the_offset_is_carried_over() {
        let mut s = Scenario::new();
        rotated(&mut s);
        let fd = s.open_existing("/var/log/app", "O_RDONLY", 16);
        s.lseek(fd, 26);
        s.read_nothing(fd);
        let found = fires("rotation-offset", s);
        assert_eq!(found[0].evidence[0].value, 26.0);
    }

    #[test]
    fn fires_when_another_process_carries_the_offset_over() {
        let mut s = Scenario::new();
        rotated(&mut s);
        s.process(300);
        let fd = s.open_existing("/var/log/app", "O_RDONLY", 16);
        s.lseek(fd, 26);
        s.read_nothing(fd);
        let found = fires("rotation-offset", s);
        assert_eq!(found[0].evidence[0].value, 26.0);
        assert_eq!(found[0].subject.pid, Some(300));
    }

    /// Begins in the new file, which has `size` bytes, at the block in which the old one had ended.
    fn block_of_the_end(size: i64) -> Scenario {
        let mut s = Scenario::new();
        let log = s.open("/var/log/app", "O_WRONLY|O_CREAT");
        s.write(log, 10_000_100);
        s.close(log);
        s.process(200);
        let fd = s.open_existing("/var/log/app", "O_RDONLY", 10_000_100);
        s.pread(fd, 1_000_100, 9_000_000);
        s.close(fd);
        s.process(100);
        s.unlink("/var/log/app");
        s.new_file("/var/log/app");
        let log = s.open("/var/log/app", "O_WRONLY|O_CREAT");
        s.write(log, size);
        s.close(log);
        s.process(300);
        let fd = s.open_existing("/var/log/app", "O_RDONLY", size);
        s.pread(fd, 100_000, 10_000_100 / 1024 * 1024);
        s
    }

    #[test]
    fn a_reader_of_blocks_begins_in_front_of_the_end() {
        let found = fires("rotation-offset", block_of_the_end(20_000_000));
        assert_eq!(found[0].evidence[0].value, 9_999_360.0);
        // As `tail` does, whatever file it is.
        silent("rotation-offset", block_of_the_end(10_005_000));
    }

    #[test]
    fn fires_when_a_process_between_had_nothing_to_read() {
        let mut s = Scenario::new();
        let log = s.open("/var/log/app", "O_WRONLY|O_CREAT");
        s.write(log, 26);
        s.close(log);
        for pid in [200, 300] {
            s.process(pid);
            let fd = s.open_existing("/var/log/app", "O_RDONLY", 26);
            if pid == 200 {
                s.read(fd, 26);
            }
            s.close(fd);
        }
        s.process(100);
        s.unlink("/var/log/app");
        s.new_file("/var/log/app");
        let log = s.open("/var/log/app", "O_WRONLY|O_CREAT");
        s.write(log, 40);
        s.close(log);
        s.process(400);
        let fd = s.open_existing("/var/log/app", "O_RDONLY", 40);
        s.lseek(fd, 26);
        s.read(fd, 14);
        fires("rotation-offset", s);
    }

    #[test]
    fn fires_when_the_old_file_has_grown_since() {
        let mut s = Scenario::new();
        let log = s.open("/var/log/app", "O_WRONLY|O_CREAT");
        s.write(log, 26);
        s.process(200);
        let fd = s.open_existing("/var/log/app", "O_RDONLY", 26);
        s.read(fd, 26);
        s.close(fd);
        s.process(100);
        s.write(log, 30);
        s.close(log);
        s.rename("/var/log/app", "/var/log/app.1");
        s.new_file("/var/log/app");
        let log = s.open("/var/log/app", "O_WRONLY|O_CREAT");
        s.write(log, 40);
        s.process(300);
        let fd = s.open_existing("/var/log/app", "O_RDONLY", 40);
        s.lseek(fd, 26);
        s.read(fd, 14);
        fires("rotation-offset", s);
    }

    #[test]
    fn silent_when_another_process_begins_anew_or_the_old_one_was_not_read_to_its_end() {
        let mut s = Scenario::new();
        rotated(&mut s);
        s.process(300);
        let fd = s.open_existing("/var/log/app", "O_RDONLY", 16);
        s.read(fd, 16);
        silent("rotation-offset", s);
        // Processes that read the header and the same record of each file.
        let mut s = Scenario::new();
        for pid in [200, 300, 400] {
            s.process(pid);
            s.new_file("/data/table");
            let fd = s.open_existing("/data/table", "O_RDONLY", 4096);
            s.pread(fd, 64, 0);
            s.pread(fd, 64, 64);
            s.close(fd);
            s.process(pid + 1);
            s.new_file("/data/table");
            let fd = s.open_existing("/data/table", "O_RDONLY", 4096);
            s.pread(fd, 64, 128);
            s.close(fd);
        }
        silent("rotation-offset", s);
    }

    #[test]
    fn silent_on_a_journal_of_its_own() {
        let mut s = Scenario::new();
        for _ in 0..3 {
            s.new_file("/data/db-journal");
            let fd = s.open("/data/db-journal", "O_RDWR|O_CREAT");
            s.pwrite(fd, 9216, 0);
            s.pread(fd, 8, 9216);
            s.close(fd);
            s.unlink("/data/db-journal");
        }
        silent("rotation-offset", s);
    }

    #[test]
    fn silent_when_it_goes_back_to_the_start() {
        let mut s = Scenario::new();
        rotated(&mut s);
        let fd = s.open_existing("/var/log/app", "O_RDONLY", 16);
        s.lseek(fd, 26);
        s.read_nothing(fd);
        s.fstat(fd);
        s.lseek(fd, 0);
        s.read(fd, 16);
        s.read_nothing(fd);
        silent("rotation-offset", s);
    }

    #[test]
    fn silent_when_it_begins_anew() {
        let mut s = Scenario::new();
        rotated(&mut s);
        let fd = s.open_existing("/var/log/app", "O_RDONLY", 16);
        s.read(fd, 16);
        silent("rotation-offset", s);
    }
}
