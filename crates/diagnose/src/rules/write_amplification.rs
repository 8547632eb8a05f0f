//! `write-amplification`: the device writes, or has to read, far more than the program
//! writes.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use crate::layers::Origin;
use crate::names::directory;
use crate::prelude::*;

/// Bytes written to the device for each byte that the program wrote.
const MIN_RATIO: f64 = 3.0;
/// Bytes written to the device from which on they count.
const MIN_BYTES: i64 = 256 << 10;
/// Calls that waited for the device from which on they count.
const MIN_CALLS: u64 = 16;
/// Writes of parts of pages that had to be read first, from which on they count.
const MIN_PARTIAL: u64 = 64;
const PAGE: i64 = 4096;

static INFO: RuleInfo = RuleInfo {
    id: "write-amplification",
    name: "Device writes far more than the program",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Block],
    kinds: kinds![Write, Sync, SyncAll, SyncRange, Msync],
    about_calls: false,
    what: "The device receives whole blocks, and the journal of the file system with each sync, so \
           small pieces that are made durable one by one are written many times over. To change \
           part of a page that is not in memory, the kernel must also read the page first.",
    when: "The data of files that a process writes with calls, together with the journal on its \
           behalf, is more than 3 times the bytes that it wrote and 256 KiB or more, and 16 or more \
           of its calls waited for such writes (fsync, msync, O_SYNC, O_DIRECT). For a file that \
           the process created or emptied, at least each page that it wrote counts as requested, \
           plus one block for the file itself, which is unavoidable. Up to 3 times is the sum of \
           one page and one journal block per page of data. A page that no call of the process \
           wrote during the recording does not count when it first goes to the device: it may have \
           been written before. Bytes that the kernel wrote in the background do not count as cost, \
           nor do files that are written through a mapping. Or: 64 or more writes of a process to a \
           file start or end within a page and had to read from the device.",
    cost: "time of calls that waited for writes, times the fraction of device bytes that the \
           program did not write; for writes that had to read, their time beyond the median of the \
           others",
    advice: "Combine several changes in one sync; write records of whole blocks; preallocate with \
           fallocate and use fdatasync, so that the file's length need not go through the \
           journal. For parts of pages: write whole aligned pages, or request the range ahead \
           (posix_fadvise(POSIX_FADV_WILLNEED)).",
    not_when: "Not when each change is promised to a client before the next one arrives.",
    bad: "int fd = open(\"log\", O_WRONLY | O_APPEND | O_SYNC);\nfor (i = 0; i < n; i++)\n    write(fd, &row[i], 100);",
    good: "for (i = 0; i < n; i++) {\n    fwrite(&row[i], 100, 1, f);\n    if (i % 64 == 63) {\n        fflush(f);\n        \
           fdatasync(fileno(f));\n    }\n}",
    reference: "Block I/O against application I/O; fsync(2); the page cache's read-modify-write",
};

#[derive(Debug, Default)]
struct Process {
    comm: Text,
    /// Bytes that it wrote with calls to files on devices.
    asked: i64,
    /// Bytes that devices were given for journals on its behalf.
    journal: i64,
    /// Calls that waited for such writes.
    waiting: u64,
    waited_ns: i64,
    examples: Examples,
}

#[derive(Debug, Default)]
struct File {
    comm: Text,
    asked: i64,
    /// Different pages that it wrote, when it created or emptied the file.
    pages: Intervals,
    data: i64,
    /// Pages that it wrote, and these together with what devices were given.
    touched: Intervals,
    seen: Intervals,
    whole: Durations,
    partial: Durations,
    read_bytes: i64,
    examples: Examples,
}

impl File {
    /// Bytes that devices were given, without what may have been written before the recording.
    fn device(&self) -> i64 {
        let before = self.seen.len() - self.touched.len();
        (self.data - before.max(0)).max(0)
    }
}

rule! {
    pub struct WriteAmplification {
        processes: Bounded<i32, Process> = Bounded::new(|process| process.waiting),
        files: Bounded<(i32, FileId), File>
            = Bounded::new(|file| file.data.unsigned_abs() + file.asked.unsigned_abs()),
    }
}

impl Rule for WriteAmplification {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Device]
    }

    fn row(&mut self, row: &Row, _: &State) {
        let Row::Device(request) = row else { return };
        if request.op != "write" {
            return;
        }
        for bio in request.bios {
            let Some(pid) = bio.cause_pid else { continue };
            match (bio.origin, bio.file) {
                (Origin::Journal, _) => self.processes.entry(pid).journal += bio.bytes,
                // The write itself may come behind: counted, and left out at the end
                // if none comes.
                (Origin::Writeback | Origin::Call, Some(file)) => {
                    let file = self.files.entry((pid, file));
                    file.data += bio.bytes;
                    // Of direct I/O it is null: the bytes are of the call.
                    if let Some(offset) = bio.offset {
                        file.seen.insert(offset, offset.saturating_add(bio.bytes));
                    }
                }
                _ => {}
            }
        }
    }

    fn call(&mut self, call: &Call, context: &Context) {
        if !call.succeeded() {
            return;
        }
        let below = &context.below;
        let regular = context.file(call).is_some_and(|f| f.is_regular() && !f.is_volatile());
        if call.kind == Kind::Write
            && regular
            && let (Some(id), Some((start, end))) = (call.file, call.range())
        {
            let made = context.file(call).and_then(|file| file.created);
            let emptied = || context.open().and_then(|open| open.opened_with("O_TRUNC")) == Some(true);
            let made = made.is_some_and(|created| created.pid == call.pid) || emptied();
            self.processes.entry(call.pid).asked += end - start;
            let file = self.files.entry((call.pid, id));
            if file.asked == 0 {
                file.comm = call.comm_text();
            }
            file.asked += end - start;
            let (first, last) = (start / PAGE * PAGE, (end + PAGE - 1) / PAGE * PAGE);
            if made {
                file.pages.insert(first, last);
            }
            file.touched.insert(first, last);
            file.seen.insert(first, last);
            let partial = start % PAGE != 0 || end % PAGE != 0;
            if partial && below.reads > 0 && !call.asynchronous {
                file.partial.add(call.dur_ns);
                file.read_bytes += below.read_bytes;
                file.examples.add(call);
            } else {
                file.whole.add(call.dur_ns);
            }
        }
        // Of a file that is written through a mapping only it is not known how much that was.
        let mapped = || call.file.and_then(|id| self.files.get(&(call.pid, id))).is_none_or(|file| file.asked == 0);
        if call.kind == Kind::Msync && mapped() {
            return;
        }
        if below.written_bytes > 0 && !call.asynchronous {
            let process = self.processes.entry(call.pid);
            call.name_thread(&mut process.comm);
            process.waiting += 1;
            process.waited_ns += call.dur_ns;
            process.examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        self.amplified(run, out);
        for ((pid, id), file) in self.files.iter() {
            let count = i64::try_from(file.partial.count).unwrap_or(i64::MAX);
            let expected = count.saturating_mul(file.whole.median_ns());
            let cost = file.partial.sum_ns.saturating_sub(expected);
            if file.partial.count < MIN_PARTIAL || !run.matters(cost) {
                continue;
            }
            let path = run.state.files.get(*id).map_or("", |f| f.name());
            let comm = run.process_name(*pid, &file.comm);
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::of(&[Kind::Write]),
                title: format!(
                    "{} changes parts of pages of {path} in {} writes, each of which first had to read from the device",
                    comm,
                    units::count(count),
                ),
                subject: Subject::process(*pid, &comm).with_file(*id, path),
                evidence: vec![
                    number("writes_that_read", count),
                    number("bytes_read", file.read_bytes),
                    number("median_ns", file.partial.median_ns()),
                ],
                examples: file.examples.list(),
                query: calls!("pid = {pid} AND file_id = {id} AND call_writes(syscall) AND rid IN (SELECT submit_rid FROM bios)"),
                ..Found::default()
            });
        }
    }
}

impl WriteAmplification {
    fn amplified(&self, run: &Run, out: &mut Vec<Found>) {
        // The files that a process wrote with calls, those with most bytes too many first.
        let mut of_process: HashMap<i32, Vec<(i64, FileId, i64)>> = HashMap::new();
        let mut beyond: HashMap<i32, i64> = HashMap::new();
        for ((pid, id), file) in self.files.iter().filter(|(_, file)| file.asked > 0) {
            let files = of_process.entry(*pid).or_default();
            files.push((file.device() - file.asked, *id, file.device()));
            if !file.pages.is_empty() {
                *beyond.entry(*pid).or_default() += (file.pages.len() + PAGE - file.asked).max(0);
            }
        }
        for (pid, process) in self.processes.iter() {
            let Some(mut files) = of_process.remove(pid) else { continue };
            files.sort_by_key(|(spare, id, _)| (std::cmp::Reverse(*spare), *id));
            let data: i64 = files.iter().map(|(_, _, data)| data).sum();
            let (asked, written) = (process.asked, data + process.journal);
            let least = asked + beyond.get(pid).copied().unwrap_or(0);
            let ratio = written as f64 / least.max(1) as f64;
            let share = 1.0 - 1.0 / ratio.max(1.0);
            let cost = (process.waited_ns as f64 * share) as i64;
            let many = written >= MIN_BYTES && process.waiting >= MIN_CALLS;
            if !many || asked == 0 || ratio <= MIN_RATIO || !run.matters(cost) {
                continue;
            }
            let comm = run.process_name(*pid, &process.comm);
            let (place, subject) = place(&files, run, Subject::process(*pid, &comm));
            out.push(Found {
                cost_ns: Some(cost),
                // Whatever file it is named after.
                costs: Costs::default().of_all_files(),
                title: format!(
                    "{} writes {}, and the device {}, {:.1} times as much{place}",
                    comm,
                    units::bytes(asked),
                    units::bytes(written),
                    written as f64 / asked.max(1) as f64,
                ),
                subject,
                evidence: vec![
                    number("bytes_written", asked),
                    number("device_bytes", data),
                    number("journal_bytes", process.journal),
                    number("waiting_calls", process.waiting as i64),
                    evidence("ratio", ratio),
                ],
                examples: process.examples.list(),
                query: calls!("pid = {pid} AND rid IN (SELECT submit_rid FROM bios JOIN block USING (block_id) WHERE op = 'write')"),
                ..Found::default()
            });
        }
    }
}

/// Where most of the bytes too many went, for the end of a sentence, and as the subject: a file, or
/// a directory when many files there share them.
fn place(files: &[(i64, FileId, i64)], run: &Run, subject: Subject) -> (String, Subject) {
    let name = |id: &FileId| run.state.files.get(*id).map_or("", |f| f.name());
    let all: i64 = files.iter().map(|(spare, ..)| (*spare).max(0)).sum();
    let Some((most, first, _)) = files.first() else { return (String::new(), subject) };
    if *most >= all / 2 {
        let path = name(first);
        return (format!(", mostly for {path}"), subject.with_file(*first, path));
    }
    let mut directories: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for (spare, id, _) in files.iter().filter(|(spare, ..)| *spare > 0) {
        let (files, bytes) = directories.entry(directory(name(id))).or_default();
        *files += 1;
        *bytes += spare;
    }
    match directories.into_iter().max_by_key(|(_, (_, bytes))| *bytes) {
        Some((path, (count, bytes))) if bytes >= all / 2 => {
            let place = format!(", mostly for {} files in {path}", units::count(count));
            (place, subject.with_path(path))
        }
        _ => {
            let count = i64::try_from(files.len()).unwrap_or(i64::MAX);
            (format!(", for {} files", units::count(count)), subject)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_records_made_durable_one_by_one() {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
        for _ in 0..100 {
            s.write(fd, 100);
            s.writes_back("/data/log", 4096, 8192);
            s.fsync(fd);
        }
        let found = fires("write-amplification", s);
        assert_eq!(found[0].evidence[0].value, 10_000.0);
        assert_eq!(found[0].evidence[1].value, 409_600.0);
        assert_eq!(found[0].evidence[2].value, 819_200.0);
    }

    #[test]
    fn many_files_are_named_by_their_directory() {
        let mut s = Scenario::new();
        for i in 0..500 {
            let path = format!("/data/many/{i}.dat");
            let fd = s.open(&path, "O_WRONLY|O_CREAT");
            s.write(fd, 100);
            s.writes_back(&path, 4096, 8192);
            s.fsync(fd);
            s.close(fd);
        }
        let found = fires("write-amplification", s);
        assert!(found[0].title.ends_with("mostly for 500 files in /data/many"), "{}", found[0].title);
        assert_eq!(found[0].subject.path.as_deref(), Some("/data/many"));
        assert_eq!(found[0].subject.file_id, None);
    }

    #[test]
    fn fires_on_parts_of_cold_pages() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDWR", 1 << 30);
        for i in 0..200 {
            s.missed(4096, 300_000);
            s.pwrite(fd, 64, i * 1_000_000 + 100);
        }
        fires("write-amplification", s);
    }

    #[test]
    fn an_msync_waits_for_what_calls_wrote() {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_RDWR|O_CREAT");
        for _ in 0..100 {
            s.write(fd, 100);
            s.writes_back("/data/log", 4096, 8192);
            s.msync(fd, 4096, "MS_SYNC");
        }
        fires("write-amplification", s);
        // Bytes stored through a mapping are unknown.
        let mut s = Scenario::new();
        let (map, log) = (s.open("/data/map", "O_RDWR|O_CREAT"), s.open("/data/log", "O_RDWR|O_CREAT"));
        for _ in 0..100 {
            s.write(log, 10);
            s.writes_back("/data/map", 4096, 8192);
            s.msync(map, 4096, "MS_SYNC");
        }
        silent("write-amplification", s);
    }

    #[test]
    fn a_page_of_a_file_that_is_saved_anew_counts_as_asked_for() {
        let saves = |flags| {
            let mut s = Scenario::new();
            for _ in 0..100 {
                let fd = s.open("/data/state.tmp", flags);
                s.pwrite(fd, 1400, 0);
                s.writes_back("/data/state.tmp", 4096, 8192);
                s.fsync(fd);
                s.close(fd);
                s.rename("/data/state.tmp", "/data/state");
            }
            s
        };
        silent("write-amplification", saves("O_WRONLY|O_CREAT|O_TRUNC"));
        fires("write-amplification", saves("O_WRONLY|O_CREAT"));
    }

    #[test]
    fn bytes_from_before_the_recording_do_not_count() {
        let commits = |before: i64, then: i64| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/table", "O_RDWR", 64 << 20);
            for i in 0..100 {
                s.pwrite(fd, 3000, 0);
                s.writes_back("/data/table", if i == 0 { before } else { then }, 0);
                s.fsync(fd);
            }
            s
        };
        silent("write-amplification", commits(20 << 20, 4096));
        // Again and again it is no matter of the past.
        let found = fires("write-amplification", commits(20 << 20, 65536));
        assert_eq!(found[0].evidence[1].value, f64::from(4096 + 99 * 65536));
    }

    #[test]
    fn silent_on_blocks_and_on_what_nobody_waits_for() {
        let mut s = Scenario::new();
        let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
        for _ in 0..100 {
            s.write(fd, 8192);
            s.writes_back("/data/wal", 8192, 8192);
            s.fsync(fd);
        }
        silent("write-amplification", s);
    }
}
