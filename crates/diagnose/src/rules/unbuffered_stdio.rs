//! `unbuffered-stdio`: streams of the C library whose calls each make a small system call.

use crate::library::{Made, Makers};
use crate::prelude::*;

/// System calls of a stream from which on they are no accident.
const MIN_CALLS: i64 = 100;
/// The buffer that the C library gives a file, bytes.
const BUFFER: i64 = 4096;
/// Bytes per system call below which the buffer is not used: a quarter of it.
const SMALL: i64 = BUFFER / 4;

static INFO: RuleInfo = RuleInfo {
    id: "unbuffered-stdio",
    name: "Streams of the C library without their buffer",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Stdio],
    kinds: kinds![Read, Write],
    about_calls: true,
    what: "A program reads or writes a file by calls on a FILE (fwrite, fprintf, fputs, fread, fgets), but \
           its buffer does not collect the bytes: setvbuf switched it off (_IONBF) or limits it to a line \
           (_IOLBF), or fflush follows each small write. So each call of the library becomes a system call \
           of a few bytes.",
    when: "Calls on streams make 100 or more reads or writes of a regular file, each where the previous one \
           ended, of 1 KiB or less on average: a quarter of the buffer that the C library gives a file. \
           Writes that a sync makes durable one by one do not count, nor do files that the kernel makes up \
           (/proc). Calls of the library's other functions, such as printf and putc, are not recorded, so \
           their system calls are not counted.",
    cost: "the time of these system calls, minus the part of it that calls of 4 KiB would need",
    advice: "Remove setvbuf with _IONBF or _IOLBF (of a command: stdbuf -o0 or -oL), and call fflush where \
             others must see the bytes, not after each line. setvbuf(stream, NULL, _IOFBF, 65536) \
             makes the buffer larger.",
    not_when: "Not when another program follows the file, or when the last lines before a crash are the \
               purpose of the log. Then write each record in one call, and let a thread flush every second.",
    bad: "setvbuf(f, NULL, _IONBF, 0);\nfor (i = 0; i < n; i++)\n  fprintf(f, \"%d\\n\", value[i]);  /* a write each */",
    good: "for (i = 0; i < n; i++)\n  fprintf(f, \"%d\\n\", value[i]);  /* a write for every 4096 bytes */",
    reference: "setvbuf(3), stdbuf(1)",
};

/// The system calls of a stream in one direction.
#[derive(Debug, Default)]
struct Stream {
    comm: Text,
    calls: i64,
    bytes: i64,
    ns: i64,
    /// Calls of the library that moved bytes, or flushed.
    library_calls: i64,
    flushes: i64,
    /// Where the latest system call ended.
    end: Option<i64>,
    examples: Examples,
}

impl Stream {
    fn made(&mut self, made: &Made) -> bool {
        let Some(offset) = made.offset.filter(|_| made.bytes > 0) else {
            return false;
        };
        let end = offset.saturating_add(made.bytes);
        let next = self.end.replace(end).is_none_or(|before| before == offset);
        if next {
            self.calls += 1;
            self.bytes = self.bytes.saturating_add(made.bytes);
            self.ns = self.ns.saturating_add(made.dur_ns);
        }
        next
    }

    /// The time that the buffer would have saved, nanoseconds.
    fn cost(&self) -> i64 {
        let needed = self.bytes.div_euclid(BUFFER) + 1;
        let spare = (self.calls - needed).max(0);
        (self.ns as f64 * spare as f64 / self.calls.max(1) as f64) as i64
    }
}

rule! {
    pub struct UnbufferedStdio {
        makers: Makers<()>,
        /// By process, file, and whether it is written.
        streams: Bounded<(i32, FileId, bool), Stream> = Bounded::new(|stream| stream.calls.unsigned_abs()),
    }
}

impl UnbufferedStdio {
    fn stream(&mut self, made: &Made, regular: bool) -> Option<&mut Stream> {
        let file = made.file.filter(|_| regular)?;
        Some(self.streams.entry((made.pid, file, made.kind == Kind::Write)))
    }
}

impl Rule for UnbufferedStdio {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Library]
    }

    fn row(&mut self, row: &Row, state: &State) {
        let Row::Library(call) = row else { return };
        if call.class != "stdio" {
            self.makers.other(call.id);
            return;
        }
        for made in self.makers.maker(call.id, ()) {
            let regular = made.file.is_some_and(|id| state.files.get(id).is_some_and(|f| f.is_regular()));
            if matches!(made.kind, Kind::Read | Kind::Write)
                && let Some(stream) = self.stream(&made, regular)
            {
                stream.made(&made);
            }
        }
        let Some(file) = call.file else { return };
        let writes = match call.function {
            "fread" | "fread_unlocked" | "fgets" | "getline" | "getdelim" => false,
            "fwrite" | "fwrite_unlocked" | "fputs" | "fprintf" | "__fprintf_chk" | "vfprintf" | "__vfprintf_chk" => true,
            "fflush" => {
                if let Some(stream) = self.streams.get_mut(&(call.pid, file, true)) {
                    stream.flushes += 1;
                }
                return;
            }
            _ => return,
        };
        let stream = self.streams.entry((call.pid, file, writes));
        stream.library_calls += 1;
        if stream.comm.is_empty() {
            stream.comm = call.comm.into();
        }
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let durable = context.synced.is_some() || context.open().is_some_and(|open| open.is_synchronous());
        if call.user_call.is_none() || durable || !call.succeeded() {
            return;
        }
        let regular = context.file(call).is_some_and(|file| file.is_regular());
        if let Some(((), made)) = self.makers.call(call)
            && let Some(stream) = self.stream(&made, regular)
            && stream.made(&made)
        {
            stream.examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, file, writes), stream) in self.streams.iter() {
            let mean = stream.bytes / stream.calls.max(1);
            if stream.calls < MIN_CALLS || mean > SMALL || !run.matters(stream.cost()) {
                continue;
            }
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            let (verb, names, kind) = match writes {
                true => ("writes", "'write', 'writev'", Kind::Write),
                false => ("reads", "'read', 'readv'", Kind::Read),
            };
            let flushed = stream.flushes >= stream.calls / 2;
            let why = match flushed {
                true => ", most of them by fflush",
                false => "",
            };
            out.push(Found {
                cost_ns: Some(stream.cost()),
                costs: Costs::of(&[kind]),
                title: format!(
                    "{} {verb} {path} through a stream whose buffer is not used: {} of {} on average{why}",
                    stream.comm,
                    counted(stream.calls, "system call", "system calls"),
                    units::bytes(mean),
                ),
                subject: Subject::process(*pid, &stream.comm).with_file(*file, path),
                evidence: vec![
                    number(if *writes { "system_writes" } else { "system_reads" }, stream.calls),
                    number("bytes", stream.bytes),
                    number("library_calls", stream.library_calls),
                    number("flushes", stream.flushes),
                    number("system_calls_ns", stream.ns),
                ],
                examples: stream.examples.list(),
                query: calls!(
                    "pid = {pid} AND file_id = {file} AND syscall IN ({names}) AND user_call IN \
                     (SELECT user_call FROM user_calls WHERE class = 'stdio')"
                ),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    /// A program that writes records through a stream.
    fn log(records: i64, each: i64, per_write: i64) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
        for i in 0..records {
            let writes = (i + 1) % per_write == 0;
            s.library("stdio", "fprintf", "/data/log", each, |s| {
                if writes {
                    s.write(fd, each * per_write);
                }
            });
        }
        s
    }

    #[test]
    fn fires_on_a_write_for_each_record() {
        let found = fires("unbuffered-stdio", log(200, 40, 1));
        assert_eq!(found.len(), 1);
        assert!(found[0].title.contains("200 system calls of 40 B"), "{}", found[0].title);
        let value = |name: &str| found[0].evidence.iter().find(|e| e.name == name).unwrap().value;
        assert_eq!((value("system_writes"), value("bytes"), value("library_calls")), (200.0, 8000.0, 200.0));
    }

    #[test]
    fn silent_when_the_buffer_collects_them() {
        silent("unbuffered-stdio", log(20_000, 40, 100));
    }

    #[test]
    fn silent_on_few() {
        silent("unbuffered-stdio", log(99, 40, 1));
    }

    #[test]
    fn silent_without_the_library() {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
        for _ in 0..200 {
            s.write(fd, 40);
        }
        silent("unbuffered-stdio", s);
    }

    #[test]
    fn silent_when_each_record_is_made_durable() {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT|O_DSYNC");
        for _ in 0..200 {
            s.library("stdio", "fflush", "/data/log", 0, |s| s.write(fd, 40));
        }
        silent("unbuffered-stdio", s);
    }

    #[test]
    fn says_that_it_is_flushed() {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
        for _ in 0..200 {
            s.library("stdio", "fprintf", "/data/log", 40, |_| ());
            s.library("stdio", "fflush", "/data/log", 0, |s| s.write(fd, 40));
        }
        let found = fires("unbuffered-stdio", s);
        assert!(found[0].title.ends_with("by fflush"), "{}", found[0].title);
    }
}
