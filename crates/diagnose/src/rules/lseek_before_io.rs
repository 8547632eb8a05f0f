//! `lseek-before-io`: lseek before each read or write, or lseek that moves nothing.

use crate::prelude::*;

/// Seeks from which on they count.
const MIN_SEEKS: u64 = 64;
/// Seeks that belong to opening.
const OPENING: u64 = 4;
/// Share of the I/O that has a seek before it, or of seeks to all of both.
const MIN_PART: f64 = 0.3;

static INFO: RuleInfo = RuleInfo {
    id: "lseek-before-io",
    name: "Seek, then read or write",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Read, Write, Seek],
    about_calls: true,
    what: "The program sets the position with lseek and then reads or writes: two system calls \
           where one suffices. Other threads that share the descriptor can move the position in \
           between. Or the program calls lseek although the position is already there, or only to \
           get it.",
    when: "A file has 64 or more calls of lseek, and more than 30 % of the reads and writes have \
           one directly before them on the same descriptor, or more than 30 % of these calls are \
           seeks that do not move the position. Fewer seeks belong to opening a file (finding a \
           trailer or the size), and so do the first four on a descriptor before its first read or \
           write, with which libraries get the position.",
    cost: "the time of these calls of lseek",
    advice: "Use pread and pwrite (preadv, pwritev), which take the offset as an argument; keep the \
           position in the program instead of asking for it. os.pread in Python, FileChannel.read \
           with a position in Java, ReadAt and WriteAt in Go, fs.read with a position in Node.js, \
           and FileExt::read_at in Rust call them.",
    not_when: "",
    bad: "lseek(fd, block * 4096, SEEK_SET);\nread(fd, buffer, 4096);",
    good: "pread(fd, buffer, 4096, block * 4096);",
    reference: "pread(2), NOTES; stdio's fseek, which flushes its buffer each time",
};

/// One process on one file.
#[derive(Debug, Default)]
struct Stream {
    comm: Text,
    /// Whether the last call was a seek that moved, and how long it took.
    pending: Option<i64>,
    ios: u64,
    /// Seeks with an I/O right behind, and their time.
    pairs: u64,
    pairs_ns: i64,
    /// Seeks that moved nothing.
    idle: u64,
    idle_ns: i64,
    /// The call that opened the descriptor, before its first read or write, and seeks since then.
    opened: Option<i64>,
    opening: u64,
    /// The position of the descriptor; `None` if unknown.
    position: Option<i64>,
    examples: Examples,
}

rule! {
    pub struct LseekBeforeIo {
        streams: Bounded<(i32, FileId, i32), Stream>
            = Bounded::new(|stream| stream.pairs + stream.idle),
    }
}

impl Rule for LseekBeforeIo {
    fn call(&mut self, call: &Call, context: &Context) {
        let (Some(file), Some(fd)) = (call.file, call.fd) else { return };
        if !call.succeeded() || call.asynchronous {
            return;
        }
        let stream = self.streams.entry((call.pid, file, fd));
        // Asks where the data are: no pread does that.
        if call.kind == Kind::Seek && call.arg("whence").is_some_and(|whence| matches!(whence, "SEEK_DATA" | "SEEK_HOLE")) {
            (stream.position, stream.pending) = (call.ret, None);
            return;
        }
        if stream.comm.is_empty() {
            stream.comm = call.comm_text();
        }
        if call.kind == Kind::Seek {
            // Of an opening that was seen: the matter of repeated-open where it is often done.
            let opened = context.open().filter(|open| open.ios == 0);
            let opened = opened.and_then(|open| open.opened.as_ref()).map(|opened| opened.rid);
            if opened != stream.opened {
                (stream.opened, stream.opening) = (opened, 0);
            }
            stream.opening += 1;
            if opened.is_some() && stream.opening <= OPENING {
                stream.position = call.ret;
                stream.pending = None;
                return;
            }
            let idle = call.ret.is_some() && call.ret == stream.position;
            if idle {
                stream.idle += 1;
                stream.idle_ns += call.dur_ns;
                stream.examples.add(call);
            } else {
                stream.pending = Some(call.dur_ns);
            }
            stream.position = call.ret;
            return;
        }
        stream.ios += 1;
        if call.positional {
            return;
        }
        if let Some(ns) = stream.pending.take() {
            stream.pairs += 1;
            stream.pairs_ns += ns;
            stream.examples.add(call);
        }
        stream.position = call.offset.map(|offset| offset.saturating_add(call.moved()));
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, file, _), stream) in self.streams.iter() {
            let seeks = stream.pairs + stream.idle;
            let often = |n: u64, of: u64| n as f64 > MIN_PART * of as f64;
            let paired = often(stream.pairs, stream.ios);
            let idle = often(stream.idle, stream.ios + seeks);
            let cost = if paired { stream.pairs_ns } else { 0 } + if idle { stream.idle_ns } else { 0 };
            if seeks < MIN_SEEKS || !(paired || idle) || !run.matters(cost) {
                continue;
            }
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            let count = |n: u64| units::count(n as i64);
            let mut title = format!("{} calls lseek {} times on {path}: ", stream.comm, count(seeks));
            title.push_str(&match (paired, idle) {
                (true, false) => format!("{} of its {} reads and writes follow one", count(stream.pairs), count(stream.ios)),
                (false, _) => format!("{} of them do not move the position", count(stream.idle)),
                (true, true) => format!(
                    "{} before one of its {} reads and writes, {} that do not move the position",
                    count(stream.pairs), count(stream.ios), count(stream.idle)
                ),
            });
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::of(&[Kind::Seek]),
                title,
                subject: Subject::process(*pid, &stream.comm).with_file(*file, path),
                evidence: vec![
                    number("seeks_before_io", stream.pairs as i64),
                    number("seeks_that_move_nothing", stream.idle as i64),
                    number("reads_and_writes", stream.ios as i64),
                ],
                examples: stream.examples.list(),
                query: calls!("pid = {pid} AND file_id = {file} AND syscall IN ('lseek', 'read', 'readv', 'write', 'writev')"),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn silent_on_questions_for_data() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/image", "O_RDONLY", 1 << 30);
        for i in 0..300 {
            s.lseek_for(fd, i * 8192, "SEEK_DATA");
            s.read(fd, 4096);
            s.lseek_for(fd, i * 8192 + 4096, "SEEK_HOLE");
        }
        silent("lseek-before-io", s);
    }

    #[test]
    fn seeks_of_opening_are_left_out() {
        let appends = |opens, seeks| {
            let mut s = Scenario::new();
            for i in 0..opens {
                let fd = s.open("/data/log", "O_WRONLY|O_CREAT|O_APPEND");
                for _ in 0..seeks {
                    s.lseek(fd, i * 30);
                }
                s.write(fd, 30);
                s.close(fd);
            }
            s
        };
        silent("lseek-before-io", appends(200, 3));
        fires("lseek-before-io", appends(1, 100));
    }

    #[test]
    fn fires_on_pairs() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDWR", 1 << 30);
        for i in 0..300 {
            s.lseek(fd, i * 7919 % 1000 * 4096);
            s.read(fd, 4096);
        }
        let found = fires("lseek-before-io", s);
        assert_eq!(found[0].evidence[0].value, 299.0);
    }

    #[test]
    fn fires_on_asking_for_the_position() {
        let mut s = Scenario::new();
        let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
        let mut end = 0;
        for _ in 0..200 {
            s.write(fd, 100);
            end += 100;
            s.lseek(fd, end);
        }
        let found = fires("lseek-before-io", s);
        assert_eq!(found[0].evidence[1].value, 200.0);
    }

    #[test]
    fn silent_on_pread_and_on_a_seek_an_open() {
        let mut s = Scenario::new();
        for i in 0..100 {
            let fd = s.open_existing(&format!("/data/{i}"), "O_RDONLY", 1 << 20);
            s.lseek(fd, 4096);
            for _ in 0..10 {
                s.read(fd, 4096);
            }
            s.pread(fd, 100, 0);
            s.close(fd);
        }
        silent("lseek-before-io", s);
    }
}
