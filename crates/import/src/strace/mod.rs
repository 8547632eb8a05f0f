//! strace's text: `strace -f -ttt -T -y` and its relatives. With `-o` or without,
//! one file or one a thread (`-ff`), any of `-t`, `-tt`, `-ttt` and `-r`.
//!
//! | Module | Job |
//! |---|---|
//! | `line` | a line: thread, time, kind |
//! | `value` | arguments and results |
//! | `call` | a call as a row |
//! | `tasks` | threads, descriptors, positions |
//! | `effects` | what a call changes of those |

mod call;
mod effects;
mod line;
mod tasks;
mod value;

use std::collections::BinaryHeap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use fathom_model::meta::SessionMeta;
use fathom_model::syscalls::Syscall;

use self::line::{Line, Time, What};
use self::tasks::{Pending, Tasks};
use self::value::Answer;
use crate::builder::Builder;
use crate::error::ImportError;
use crate::next_line;
use crate::text::shown;

/// Number of lines that are examined to find out what a log contains.
const SURVEY_LINES: u64 = 20_000;
/// Bad lines that are kept as examples.
const EXAMPLES: usize = 3;
/// Threads that have ended before they are written.
const ENDED_ROWS: usize = 4096;

/// Properties of a log, detected before it is read.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    time: Option<&'static str>,
    durations: bool,
    paths: bool,
    threads: bool,
    /// Whether every call that moves a position is in the log.
    positions: bool,
    /// The thread of lines that do not name one.
    main: Option<i32>,
}

/// Whether the beginning of a file looks like strace's.
pub fn looks_like(head: &str) -> bool {
    let mut calls = 0;
    let mut lines = 0;
    for line in head.lines().take(200) {
        lines += 1;
        match line::parse(line.as_bytes()).map(|l| l.what) {
            Some(What::Call(_, rest)) => calls += u32::from(value::split(rest).is_some()),
            Some(What::Unfinished(..) | What::Resumed(..) | What::Exited(_)) => calls += 1,
            _ => {}
        }
    }
    calls > 0 && calls * 4 >= lines
}

/// Looks through the beginning of each file.
///
/// # Errors
/// When a file cannot be read, and when it has calls without times.
pub fn survey(files: &[PathBuf]) -> Result<Survey, ImportError> {
    let mut survey = Survey::default();
    for path in files {
        let mut reader = open(path)?;
        let (mut line, mut bytes, mut lines) = (Vec::new(), 0, 0);
        let mut timeless = 0;
        while lines < SURVEY_LINES || !survey.positions {
            let more = next_line(&mut reader, &mut line, &mut bytes);
            if !more.map_err(ImportError::io("read", path))? {
                break;
            }
            lines += 1;
            let Some(parsed) = line::parse(&line) else {
                continue;
            };
            let (name, rest) = match parsed.what {
                What::Call(name, rest) => (name, rest),
                What::Unfinished(name, rest) => (name, rest),
                _ => continue,
            };
            survey.threads |= parsed.tid.is_some();
            match parsed.time {
                Some(Time::Unix(_)) => survey.time = Some("ttt"),
                Some(Time::OfDay(_)) => survey.time = Some("t"),
                Some(Time::Relative(_)) => survey.time = Some("r"),
                None => timeless += 1,
            }
            // None of strace's classes of calls on files and descriptors has these, so all calls
            // were traced, or at least all calls that move positions.
            survey.positions |= matches!(
                name,
                b"brk" | b"exit_group" | b"rt_sigaction" | b"arch_prctl" | b"lseek" | b"_llseek"
            );
            if lines > SURVEY_LINES {
                continue;
            }
            survey.paths |= line::find(rest, b"</").is_some();
            if let Some((_, answer)) = value::split(rest) {
                survey.durations |= answer.dur_ns.is_some();
                if parsed.tid.is_none() && matches!(name, b"set_tid_address" | b"gettid") {
                    let tid = answer.ret.and_then(|r| i32::try_from(r).ok());
                    survey.main = survey.main.or(tid);
                }
            }
        }
        if survey.time.is_none() && timeless > 0 {
            return Err(ImportError::NoTimes(path.clone()));
        }
    }
    Ok(survey)
}

fn open(path: &Path) -> Result<BufReader<File>, ImportError> {
    let file = File::open(path).map_err(ImportError::io("open", path))?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

/// Reads the logs into `builder` and records the results in `meta`. Returns the first lines that
/// could not be parsed, escaped for a terminal.
///
/// # Errors
/// When a file cannot be read or the session not be written.
pub(crate) fn read(
    files: &[PathBuf],
    survey: &Survey,
    builder: &mut Builder,
    meta: &mut SessionMeta,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<String>, ImportError> {
    let mut reader = Reader {
        tasks: Tasks::default(),
        builder,
        positions: survey.positions,
        several: files.len() > 1,
        main: survey.main,
        lines: 0,
        bad: 0,
        other: 0,
        examples: Vec::new(),
        command: None,
        first_tid: None,
        exit_status: None,
    };
    let mut logs = Vec::new();
    for path in files {
        logs.push(Log::open(path, files.len() > 1)?);
    }
    let mut heap = BinaryHeap::new();
    for (index, log) in logs.iter_mut().enumerate() {
        if log.advance()? {
            heap.push(std::cmp::Reverse((log.ns, index)));
        }
    }
    let mut count = 0u64;
    // Of several logs always the line that is the earliest.
    while let Some(std::cmp::Reverse((ns, index))) = heap.pop() {
        let Some(log) = logs.get_mut(index) else {
            break;
        };
        reader.line(&log.line, ns, log.tid)?;
        if log.advance()? {
            heap.push(std::cmp::Reverse((log.ns, index)));
        }
        count += 1;
        if count & 4095 == 0 {
            progress(logs.iter().map(|log| log.bytes).sum());
        }
    }
    progress(logs.iter().map(|log| log.bytes).sum());
    reader.end(meta, survey)
}

/// One file that is being read.
struct Log {
    path: PathBuf,
    reader: BufReader<File>,
    line: Vec<u8>,
    bytes: u64,
    /// When the line was written.
    ns: i64,
    /// Midnights that have passed.
    days: i64,
    /// The thread in the file's name.
    tid: Option<i32>,
}

impl Log {
    fn open(path: &Path, of_several: bool) -> Result<Self, ImportError> {
        let suffix = path.extension().and_then(|e| e.to_str()?.parse().ok());
        Ok(Log {
            path: path.to_path_buf(),
            reader: open(path)?,
            line: Vec::new(),
            bytes: 0,
            ns: 0,
            days: 0,
            tid: suffix.filter(|_| of_several),
        })
    }

    fn advance(&mut self) -> Result<bool, ImportError> {
        const DAY: i64 = 86_400_000_000_000;
        let more = next_line(&mut self.reader, &mut self.line, &mut self.bytes);
        if !more.map_err(ImportError::io("read", &self.path))? {
            return Ok(false);
        }
        match line::parse(&self.line).and_then(|l| l.time) {
            Some(Time::Unix(ns)) => self.ns = ns,
            Some(Time::OfDay(ns)) => {
                let mut now = ns.saturating_add(self.days.saturating_mul(DAY));
                if now < self.ns.saturating_sub(DAY / 2) {
                    self.days += 1;
                    now = now.saturating_add(DAY);
                }
                self.ns = now;
            }
            Some(Time::Relative(ns)) => self.ns = self.ns.saturating_add(ns),
            None => {}
        }
        Ok(true)
    }
}

struct Reader<'a> {
    tasks: Tasks,
    builder: &'a mut Builder,
    positions: bool,
    several: bool,
    main: Option<i32>,
    lines: u64,
    bad: u64,
    other: u64,
    examples: Vec<String>,
    command: Option<Vec<String>>,
    first_tid: Option<i32>,
    exit_status: Option<i32>,
}

impl Reader<'_> {
    fn line(&mut self, text: &[u8], ns: i64, file_tid: Option<i32>) -> Result<(), ImportError> {
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        self.lines += 1;
        let Some(line) = line::parse(text) else {
            self.bad(text);
            return Ok(());
        };
        let tid = line.tid.or(file_tid).or(self.main).unwrap_or(0);
        if !matches!(line.what, What::Note(_)) {
            self.builder.seen(ns);
            self.first_tid.get_or_insert(tid);
        }
        if !self.understood(&line, tid, ns)? {
            self.bad(text);
        }
        if self.tasks.ended_count() >= ENDED_ROWS {
            let ended = self.tasks.take_ended();
            self.builder.threads(&ended)?;
        }
        Ok(())
    }

    fn bad(&mut self, text: &[u8]) {
        self.bad += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(shown(text));
        }
    }

    /// Takes a line; false when it is damaged.
    fn understood(&mut self, line: &Line<'_>, tid: i32, ns: i64) -> Result<bool, ImportError> {
        if let Some(comm) = line.comm {
            self.tasks.get(tid, ns).info.comm = Some(comm.to_vec());
        }
        match line.what {
            What::Note(_) => {}
            What::Exited(status) => self.ended(tid, ns, Some(status))?,
            What::Killed(status) => self.ended(tid, ns, status)?,
            What::Superseded(by) => {
                self.abandon(tid, ns)?;
                self.tasks.renamed(by, tid, ns);
            }
            What::Call(name, rest) => {
                self.abandon(tid, ns)?;
                return self.call(tid, ns, name, rest, None);
            }
            What::Unfinished(name, rest) => {
                self.abandon(tid, ns)?;
                let moves = self.begins_to_move(tid, ns, name, rest);
                self.tasks.get(tid, ns).pending = Some(Pending {
                    name: name.to_vec(),
                    text: rest.to_vec(),
                    ts_ns: ns,
                    moves,
                });
            }
            What::Resumed(name, rest) => {
                let Some(pending) = self.tasks.get(tid, ns).pending.take() else {
                    // Began before the log.
                    return Ok(call::known(name).is_none());
                };
                if pending.name != name {
                    return Ok(false);
                }
                let mut text = pending.text.clone();
                text.extend_from_slice(rest);
                return self.call(tid, pending.ts_ns, name, &text, Some((&pending, ns)));
            }
        }
        Ok(true)
    }

    /// A thread's call of which no end will come gets its row.
    fn abandon(&mut self, tid: i32, ns: i64) -> Result<(), ImportError> {
        let pending = match self.tasks.known(tid) {
            Some(task) if task.pending.is_some() => self.tasks.get(tid, ns).pending.take(),
            _ => None,
        };
        let Some(pending) = pending else {
            return Ok(());
        };
        if let Some((description, _)) = &pending.moves {
            let mut description = description.borrow_mut();
            description.moving = description.moving.saturating_sub(1);
            description.position = None;
            description.disturbed += 1;
        }
        let Some(known) = call::known(&pending.name) else {
            self.other += 1;
            return Ok(());
        };
        let mut args = value::split_unfinished(&pending.text);
        call::reorder(&pending.name, &mut args);
        let answer = Answer {
            dur_ns: Some(ns.saturating_sub(pending.ts_ns)),
            ..Answer::default()
        };
        let task = self.tasks.get(tid, ns);
        let row = call::row(known, &args, &answer, task, pending.ts_ns, self.builder);
        self.builder.call(known, &row)
    }

    fn call(
        &mut self,
        tid: i32,
        ns: i64,
        name: &[u8],
        text: &[u8],
        pending: Option<(&Pending, i64)>,
    ) -> Result<bool, ImportError> {
        // `read(0, <unfinished ...>) = ?`: the thread was killed in it.
        let known = call::known(name);
        let Some((mut args, answer)) = value::split(text) else {
            self.other += u64::from(known.is_none());
            return Ok(known.is_none());
        };
        call::reorder(name, &mut args);
        let Some(known) = known else {
            self.other += 1;
            self.effects_of_other(tid, ns, name, &args, &answer, text);
            return Ok(true);
        };
        self.storage_call(tid, ns, known, &args, &answer, pending)?;
        Ok(true)
    }

    fn storage_call(
        &mut self,
        tid: i32,
        ns: i64,
        known: &'static Syscall,
        args: &[&[u8]],
        answer: &Answer,
        pending: Option<(&Pending, i64)>,
    ) -> Result<(), ImportError> {
        let task = self.tasks.get(tid, ns);
        effects::learn_directory(task, known, args);
        let mut row = call::row(known, args, answer, task, ns, self.builder);
        self.place(tid, known, args, pending.map(|(p, _)| p), &mut row);
        self.builder.call(known, &row)?;
        self.effects(tid, known, args, &row);
        Ok(())
    }

    fn ended(&mut self, tid: i32, ns: i64, status: Option<i32>) -> Result<(), ImportError> {
        self.tasks.get(tid, ns);
        self.abandon(tid, ns)?;
        if let Some(task) = self.tasks.ended(tid, ns, status)
            && Some(task.info.tid) == self.first_tid
        {
            self.exit_status = status;
        }
        Ok(())
    }

    fn end(mut self, meta: &mut SessionMeta, survey: &Survey) -> Result<Vec<String>, ImportError> {
        let last = self.builder.last_at_ns().unwrap_or(0);
        let ended = self.tasks.take_ended();
        self.builder.threads(&ended)?;
        let mut left: Vec<i32> = self.tasks.ids();
        left.sort_unstable();
        for tid in left {
            self.abandon(tid, last)?;
        }
        let left: Vec<_> = self.tasks.drain().into_iter().map(|t| t.info).collect();
        self.builder.threads(&left)?;
        meta.command = self.command.unwrap_or_default();
        meta.exit_status = self.exit_status;
        if let Some(source) = &mut meta.source {
            source.lines = self.lines;
            source.bad_lines = self.bad;
            source.other_calls = self.other;
            source.not_observable = survey.not_observable(self.several);
        }
        Ok(self.examples)
    }
}

impl Survey {
    fn not_observable(&self, several: bool) -> Vec<String> {
        let mut missing: Vec<String> = vec![
            "CPUs, devices and inode numbers, page faults, operations of io_uring and AIO, \
             calls that the log lacks"
                .into(),
        ];
        if !self.durations {
            missing.push("durations of calls (strace -T)".into());
        }
        if !self.paths {
            missing.push(
                "files of descriptors that were open before, and targets of symbolic links \
                 (strace -y)"
                    .into(),
            );
        }
        if !self.positions {
            missing.push(
                "offsets of read and write, because the log may lack calls that move \
                 the position (also trace lseek)"
                    .into(),
            );
        }
        match self.time {
            Some("t") => {
                missing.push("the date (strace -ttt): times are taken as times of one day".into())
            }
            Some("r") if several => {
                missing.push("the order of calls across threads (strace -ttt)".into());
            }
            Some("r") => missing.push("the time of day (strace -ttt)".into()),
            _ => {}
        }
        if !self.threads && !several && self.main.is_none() {
            missing.push("the thread: its id is shown as 0 (strace -f -o)".into());
        }
        missing
    }
}
