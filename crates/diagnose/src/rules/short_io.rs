//! `short-io`: fewer bytes were moved than requested, and the program never requested the rest.

use crate::prelude::*;

static INFO: RuleInfo = RuleInfo {
    id: "short-io",
    name: "Short write or read that was not continued",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Read, Write],
    about_calls: true,
    what: "write or read moved fewer bytes than requested, which is not an error, and the program \
           continued as if all had been moved. The rest of a write is missing in the file; the rest \
           of a read is the previous contents of the buffer.",
    when: "On a regular file, a write moves fewer bytes than requested, and the process's next \
           write to the file does not start where the short one ended, or is as large as the short \
           one was meant to be (with O_APPEND each write starts where the previous one ended). If \
           it starts there and is larger than the rest, it may contain the rest and more: then \
           severity is low. Or a read moves fewer bytes without reaching the end of the file, and \
           the process never reads on from there. Reads whose file may have grown meanwhile do not \
           count, nor do reads of files of unknown length.",
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
#[derive(Clone, Debug, Default)]
struct Pending {
    end: i64,
    /// Bytes that it was asked for.
    size: i64,
    missing: i64,
    example: Examples,
}

/// One process on one file in one direction.
#[derive(Debug, Default)]
struct Stream {
    comm: Text,
    pending: Option<Pending>,
    abandoned: u64,
    /// Of which the rest may have been written with what came behind it.
    unsure: u64,
    missing: i64,
    examples: Examples,
    first: Option<Examples>,
}

impl Stream {
    fn abandon(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.abandoned += 1;
            self.missing += pending.missing;
            self.first.get_or_insert(pending.example);
        }
    }
}

rule! {
    pub struct ShortIo {
        streams: Bounded<(i32, FileId, bool), Stream> = Bounded::new(|stream| stream.abandoned),
    }
}

impl Rule for ShortIo {
    fn call(&mut self, call: &Call, context: &Context) {
        let (Some(id), Some(file)) = (call.file, context.file(call)) else { return };
        if !file.is_regular() || call.asynchronous {
            return;
        }
        let Some(size) = call.size else { return };
        let write = call.kind == Kind::Write;
        let key = (call.pid, id, write);
        // A failed attempt to write the rest is one, too, and may have no place in the file.
        if let Some(stream) = self.streams.get_mut(&key)
            && let Some(pending) = &stream.pending
            && (call.offset.is_some() || call.errno.is_some())
        {
            let there = call.offset == Some(pending.end) || call.errno.is_some();
            let (rest, same) = (size <= pending.missing, size == pending.size);
            match (write, there) {
                (true, true) if rest => stream.pending = None,
                (true, true) if !same => {
                    stream.unsure += 1;
                    stream.abandon();
                }
                (true, _) => stream.abandon(),
                (false, true) => stream.pending = None,
                (false, false) => {}
            }
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
        let mut example = Examples::default();
        example.add_first(call);
        stream.pending = Some(Pending {
            end,
            size,
            missing: size - call.moved(),
            example,
        });
        stream.examples.add_first(call);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, file, write), stream) in self.streams.iter() {
            let pending = stream.pending.as_ref();
            let abandoned = stream.abandoned + u64::from(pending.is_some());
            if abandoned == 0 {
                continue;
            }
            let missing = stream.missing + pending.map_or(0, |p| p.missing);
            let path = run.state.files.get(*file).map_or("", |f| f.name());
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
                    Some(first) => first.list(),
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
