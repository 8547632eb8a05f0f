//! `short-io`: fewer bytes were moved than requested, and the program never requested the rest.

use crate::prelude::*;

/// Short calls of a stream that wait to be continued at the same time.
const MAX_PENDING: usize = 16;

static INFO: RuleInfo = RuleInfo {
    id: "short-io",
    name: "Short write or read that was not continued",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Read, Write, Truncate, Open],
    about_calls: true,
    what: "write or read moved fewer bytes than requested, which is not an error, and the program \
           continued as if all had been moved. The rest of a write is missing in the file; the rest \
           of a read is the previous contents of the buffer.",
    when: "On a regular file, a write moves fewer bytes than requested, and the process does not \
           write the rest: no later write starts where the short one ended, and none covers the rest \
           together with bytes before it. A write that starts there and is as large as the short one \
           was meant to be is the next record (with O_APPEND each write starts where the previous one \
           ended). If it starts there and is larger than the rest, it may contain the rest and more: \
           then severity is low. A failed attempt to write the rest counts as one. Short writes do not \
           count if the process then truncates the file to their end or to less, or opens it with \
           O_TRUNC, or if the file is removed or replaced before the recording ends. Or a read \
           moves fewer bytes without reaching the end of the file, and the process never reads on \
           from there, nor reads the whole range again. Reads whose file may have grown meanwhile \
           do not count, nor do reads of files of unknown length.",
    cost: "",
    advice: "Call again for the rest until all is moved or the call returns an error (or 0 for a \
           read): use a loop around write and read, or fwrite and fread, which contain one.",
    not_when: "",
    bad: "write(fd, buffer, n);",
    good: "while (n > 0) {\n    ssize_t done = write(fd, buffer, n);\n    if (done < 0)\n        return -1;\n    buffer += done;\n    \
           n -= done;\n}",
    reference: "write(2), RETURN VALUE",
};

/// A short call that waits to be continued.
#[derive(Debug)]
struct Pending {
    end: i64,
    /// Bytes that it was asked for.
    size: i64,
    missing: i64,
    example: Example,
}

/// The effect of a later call on a short one.
enum Fate {
    Waits,
    Continued,
    /// The rest may have been written with what came behind it.
    Unsure,
    Abandoned,
}

impl Pending {
    fn fate(&self, call: &Call, size: i64) -> Fate {
        // A failed attempt to write the rest is one, too, and may have no place in the file.
        let at = call.offset.unwrap_or(self.end);
        let again = at < self.end && at.saturating_add(size) >= self.end.saturating_add(self.missing);
        let rest = call.kind == Kind::Read || size <= self.missing;
        match at == self.end {
            // Other threads may write elsewhere before this one goes on.
            false if !again => Fate::Waits,
            true if !rest && size == self.size => Fate::Abandoned,
            true if !rest => Fate::Unsure,
            _ => Fate::Continued,
        }
    }
}

/// One process on one file in one direction.
#[derive(Debug, Default)]
struct Stream {
    comm: Text,
    pending: Vec<Pending>,
    abandoned: u64,
    /// Of which the rest may have been written with what came behind it.
    unsure: u64,
    missing: i64,
    examples: Examples,
    first: Option<Example>,
    /// Whether the file had a name at one of them: a temporary file without one is used by its descriptor.
    named: bool,
}

impl Stream {
    fn meet(&mut self, call: &Call, size: i64) {
        for pending in std::mem::take(&mut self.pending) {
            match pending.fate(call, size) {
                Fate::Waits => self.pending.push(pending),
                Fate::Continued => {}
                Fate::Unsure => {
                    self.unsure += 1;
                    self.abandon(pending);
                }
                Fate::Abandoned => self.abandon(pending),
            }
        }
    }

    fn abandon(&mut self, pending: Pending) {
        self.abandoned += 1;
        self.missing += pending.missing;
        self.first.get_or_insert(pending.example);
    }
}

rule! {
    pub struct ShortIo {
        streams: Bounded<(i32, FileId, bool), Stream> = Bounded::new(|stream| stream.abandoned),
    }
}

impl Rule for ShortIo {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(id) = call.file else { return };
        if matches!(call.kind, Kind::Truncate | Kind::Open) {
            let length = match call.kind {
                Kind::Open => call.makes_file().then_some(0),
                _ => call.arg("length").and_then(|n| n.parse::<i64>().ok()),
            };
            let stream = self.streams.get_mut(&(call.pid, id, true)).filter(|_| call.succeeded());
            if let Some((stream, length)) = stream.zip(length) {
                stream.pending.retain(|pending| pending.end < length);
            }
            return;
        }
        let Some(file) = context.file(call) else { return };
        if !file.is_regular() || call.asynchronous {
            return;
        }
        let Some(size) = call.size else { return };
        let write = call.kind == Kind::Write;
        let key = (call.pid, id, write);
        if let Some(stream) = self.streams.get_mut(&key)
            && (call.offset.is_some() || call.errno.is_some())
        {
            stream.meet(call, size);
        }
        let Some(offset) = call.offset else { return };
        let end = offset.saturating_add(call.moved());
        let short = call.succeeded() && call.moved() > 0 && call.moved() < size;
        let unfinished = write || file.size.is_some_and(|length| end < length && file.written == 0);
        if !short || !unfinished {
            return;
        }
        let stream = self.streams.entry(key);
        if stream.comm.is_empty() {
            stream.comm = call.comm_text();
        }
        if !write {
            stream.pending.clear();
        }
        if stream.pending.len() >= MAX_PENDING {
            let first = stream.pending.remove(0);
            stream.abandon(first);
        }
        stream.pending.push(Pending {
            end,
            size,
            missing: size - call.moved(),
            example: Example::of(call),
        });
        stream.named |= !file.unlinked;
        stream.examples.add_first(call);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, file, write), stream) in self.streams.iter() {
            let abandoned = stream.abandoned + stream.pending.len() as u64;
            let known = run.state.files.get(*file);
            // No program misses the bytes of a file that was removed since.
            let removed = *write && stream.named && known.is_some_and(|f| f.unlinked);
            if abandoned == 0 || removed {
                continue;
            }
            let missing = stream.missing + stream.pending.iter().map(|p| p.missing).sum::<i64>();
            let path = known.map_or("", |f| f.name());
            let (verb, what) = match write {
                true => ("wrote", "call_writes(syscall)"),
                false => ("read", "call_reads(syscall)"),
            };
            let unsure = stream.unsure >= abandoned;
            let mut caveats = Vec::new();
            if stream.unsure > 0 {
                caveats.push(format!(
                    "after {} of them the next write starts where the short one ended and is larger than the rest: it may contain the rest and more",
                    units::count(stream.unsure as i64)
                ));
            }
            out.push(Found {
                severity: Some(match (*write, unsure) {
                    (true, false) => Severity::High,
                    (true, true) => Severity::Low,
                    (false, _) => Severity::Medium,
                }),
                caveats,
                title: format!(
                    "{} {verb} fewer bytes of {path} than requested {} and never continued: {} are missing",
                    stream.comm,
                    match abandoned {
                        1 => "once".to_owned(),
                        n => format!("{} times", units::count(n as i64)),
                    },
                    units::bytes(missing),
                ),
                subject: Subject::process(*pid, &stream.comm).with_file(*file, path),
                evidence: vec![
                    number("calls", abandoned as i64),
                    number("bytes_missing", missing),
                ],
                examples: match &stream.first {
                    Some(first) => vec![first.clone()],
                    None => stream.examples.list(),
                },
                query: calls!("pid = {pid} AND file_id = {file} AND {what} AND bytes < size"),
                rests_on_absence: true,
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::finding::Severity;
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_when_the_rest_is_not_written() {
        let mut s = Scenario::new();
        let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
        s.short_write(fd, 1000, 4096);
        s.close(fd);
        let found = fires("short-io", s);
        assert_eq!(found[0].evidence[1].value, 3096.0);
    }

    #[test]
    fn fires_when_the_next_record_is_appended() {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT|O_APPEND");
        s.short_write(fd, 2384, 30_000);
        s.short_write(fd, 30_000, 30_000);
        let found = fires("short-io", s);
        assert_eq!(found[0].severity, Severity::High);
        assert_eq!(found[0].evidence[1].value, 27_616.0);

        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT|O_APPEND");
        s.short_write(fd, 2384, 30_000);
        s.short_write(fd, 40_000, 40_000);
        let found = fires("short-io", s);
        assert_eq!((found[0].severity, found[0].caveats.len()), (Severity::Low, 1));
    }

    #[test]
    fn silent_when_the_rest_is_appended_or_fails() {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT|O_APPEND");
        s.short_write(fd, 2384, 30_000);
        s.short_write(fd, 10_000, 27_616);
        s.short_write(fd, 17_616, 17_616);
        s.write(fd, 30_000);
        silent("short-io", s);
    }

    /// A record that is cut short.
    fn torn(s: &mut Scenario) -> i32 {
        let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
        s.write(fd, 30_000);
        s.short_write(fd, 2384, 30_000);
        fd
    }

    #[test]
    fn silent_when_the_torn_record_is_cut_off_or_removed() {
        // As Redis does with its log.
        let mut s = Scenario::new();
        let fd = torn(&mut s);
        s.truncate(fd, 30_000);
        s.lseek(fd, 30_000);
        s.write(fd, 30_000);
        silent("short-io", s);

        let mut s = Scenario::new();
        let fd = torn(&mut s);
        s.close(fd);
        s.unlink("/data/out");
        silent("short-io", s);

        let mut s = Scenario::new();
        torn(&mut s);
        let new = s.open("/data/new", "O_WRONLY|O_CREAT");
        s.write(new, 60_000);
        s.rename("/data/new", "/data/out");
        silent("short-io", s);

        let mut s = Scenario::new();
        torn(&mut s);
        let fd = s.open("/data/out", "O_WRONLY|O_TRUNC");
        s.write(fd, 60_000);
        silent("short-io", s);
    }

    #[test]
    fn silent_when_it_is_written_again_or_later() {
        let mut s = Scenario::new();
        let fd = torn(&mut s);
        s.pwrite(fd, 30_000, 30_000);
        silent("short-io", s);

        let mut s = Scenario::new();
        let fd = torn(&mut s);
        s.thread(101, "other");
        s.pwrite(fd, 512, 1 << 20);
        s.thread(100, "program");
        s.write(fd, 27_616);
        silent("short-io", s);
    }

    #[test]
    fn fires_on_each_that_is_left() {
        let mut s = Scenario::new();
        let fd = torn(&mut s);
        s.lseek(fd, 60_000);
        s.short_write(fd, 1000, 30_000);
        s.truncate(fd, 90_000);
        let found = fires("short-io", s);
        assert_eq!((found[0].evidence[0].value, found[0].evidence[1].value), (2.0, 56_616.0));

        // It has no name from its beginning on.
        let mut s = Scenario::new();
        let fd = s.open("/tmp", "O_RDWR|O_TMPFILE");
        s.short_write(fd, 2384, 30_000);
        fires("short-io", s);
    }

    #[test]
    fn silent_when_it_goes_on_or_reached_the_end() {
        let mut s = Scenario::new();
        let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
        s.short_write(fd, 1000, 4096);
        s.write(fd, 3096);
        s.close(fd);
        let fd = s.open_existing("/data/in", "O_RDONLY", 1000);
        s.short_read(fd, 1000, 4096);
        s.close(fd);
        silent("short-io", s);
    }
}
