//! Recordings whose probes are a script.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use fathom_model::abi::{
    CallRecord, NO_OFFSET, NO_SIZE, RECORD_CALL, ShedKey, ShedValue, TailControl,
};
use fathom_model::meta::{Hook, Records, Save, State};
use fathom_model::raw::Ring;
use fathom_model::syscalls::Syscall;
use fathom_probe::{Command, Conditions, InFlight, Losses, ProbeError, Signals, system};
use fathom_session::Session;

use super::*;
use crate::pipeline::Pipeline;
use crate::plan::Plan;
use crate::{Detail, KeepLimit, Options, SaveWhen, Stall, Target, meta};

type Calls = (&'static str, usize);

/// Probes that find these calls, one entry per drain; then their tasks end.
#[derive(Default)]
struct Script {
    calls: VecDeque<Calls>,
    /// Found when the programs are detached.
    pending: Option<Calls>,
    /// Tasks go on when there are no calls any more.
    endless: bool,
    /// Calls that find no room.
    lost: u64,
    counted: Vec<(ShedKey, ShedValue)>,
    /// Done before the calls of this many entries are left.
    at: Option<(usize, Box<dyn FnMut()>)>,
    seen: u64,
    stopped: bool,
    /// Calls that do not return.
    hangs: Vec<InFlight>,
    hooks: Vec<Hook>,
}

impl Script {
    fn of(calls: impl IntoIterator<Item = Calls>) -> Self {
        Self {
            calls: calls.into_iter().collect(),
            ..Self::default()
        }
    }

    fn chunk(&mut self, (name, count): Calls) -> RawChunk {
        let call = |n: u64| CallRecord {
            kind: RECORD_CALL as u8,
            syscall: Syscall::index_of(name).unwrap() as u16,
            fd: -1,
            ts_ns: 1000 * (self.seen + n),
            dur_ns: 5,
            pid: 10,
            tid: 10,
            offset: NO_OFFSET,
            size: NO_SIZE,
            ..CallRecord::parse(&[0; CallRecord::SIZE]).unwrap()
        };
        let bytes = (1..=count as u64).flat_map(|n| call(n).to_bytes());
        let bytes = bytes.collect();
        self.seen += count as u64;
        RawChunk {
            cpu: 0,
            ring: Ring::Slot,
            bytes,
        }
    }
}

impl RecordSource for Script {
    fn drain(&mut self, out: &mut Vec<RawChunk>) {
        if let Some((left, action)) = &mut self.at
            && *left == self.calls.len()
        {
            action();
            self.at = None;
        }
        let pending = self.pending.filter(|_| self.stopped);
        for calls in self.calls.pop_front().into_iter().chain(pending) {
            let chunk = self.chunk(calls);
            out.push(chunk);
        }
    }

    fn recycle(&mut self, _: Vec<u8>) {}

    fn stop(&mut self) -> Result<(), ProbeError> {
        self.stopped = true;
        Ok(())
    }

    fn live_tasks(&self) -> u64 {
        u64::from(self.endless || !self.calls.is_empty())
    }

    fn in_flight(&mut self) -> Result<Vec<InFlight>, ProbeError> {
        Ok(self.hangs.clone())
    }

    fn counters(&self) -> KernelStats {
        KernelStats {
            seen: self.seen + self.lost,
            lost: self.lost,
            ..KernelStats::default()
        }
    }

    fn losses(&self) -> Result<Losses, ProbeError> {
        let read = Syscall::index_of("read").unwrap() as u32;
        let lost = ShedValue {
            count: self.lost,
            ..ShedValue::parse(&[0; ShedValue::SIZE]).unwrap()
        };
        let by_cpu = vec![(0, read, lost)];
        Ok(Losses {
            by_cpu: by_cpu.into_iter().filter(|l| l.2.count > 0).collect(),
            ..Losses::default()
        })
    }

    fn take_counted(&mut self) -> Result<Vec<(ShedKey, ShedValue)>, ProbeError> {
        Ok(std::mem::take(&mut self.counted))
    }

    fn set_tail(&self, _: &TailControl) -> Result<(), ProbeError> {
        Ok(())
    }

    fn records(&self) -> Records {
        Records::default()
    }

    fn hooks(&self) -> &[Hook] {
        &self.hooks
    }

    fn ring_peak(&self) -> f64 {
        0.0
    }
}

/// Signals, each before the turn that has its number.
#[derive(Default)]
struct Arrivals(Vec<(u64, Arrived)>, u64);

impl Control for Arrivals {
    fn take(&mut self) -> io::Result<Vec<Arrived>> {
        self.1 += 1;
        let now = self.0.iter().filter(|(turn, _)| *turn == self.1);
        Ok(now.map(|(_, signal)| *signal).collect())
    }

    fn wait(&mut self, time: Duration, _: Option<BorrowedFd<'_>>) -> io::Result<()> {
        std::thread::sleep(time);
        Ok(())
    }
}

fn signal(number: i32, from_terminal: bool) -> Arrived {
    Arrived {
        number,
        from_terminal,
    }
}

const SIGINT: i32 = 2;
const SIGUSR1: i32 = 10;
const SIGTERM: i32 = 15;

#[derive(Default)]
struct Reports {
    warnings: Vec<String>,
    saves: Vec<Save>,
    progress: Vec<Progress>,
    ended: usize,
    stalls: Vec<String>,
}

impl Observer for Reports {
    fn warning(&mut self, text: &str) {
        self.warnings.push(text.to_owned());
    }

    fn progress(&mut self, progress: &Progress) {
        self.progress.push(*progress);
    }

    fn saved(&mut self, save: &Save) {
        self.saves.push(save.clone());
    }

    fn ended(&mut self) {
        self.ended += 1;
    }

    fn stalled(&mut self, stall: &Stall) {
        self.stalls.push(stall.to_string());
    }
}

/// A recording, and where it is.
struct Recorded {
    summary: Result<Summary, RecordError>,
    target: RunningTarget,
    reports: Reports,
    dir: tempfile::TempDir,
}

impl Recorded {
    fn path(&self) -> PathBuf {
        session_in(self.dir.path())
    }

    fn session(&self) -> Session {
        Session::open(&self.path()).unwrap()
    }

    fn summary(&self) -> &Summary {
        self.summary.as_ref().unwrap()
    }
}

fn session_in(dir: &Path) -> PathBuf {
    dir.join("session.fathom")
}

fn record_in(
    dir: tempfile::TempDir,
    options: Options,
    script: Script,
    mut target: RunningTarget,
    mut signals: Arrivals,
) -> Recorded {
    let mut plan = Plan::of(&options, &Target::Everything).unwrap();
    let meta = meta::describe(&options, &Target::Everything, &plan);
    let (output, trigger) = (session_in(dir.path()), plan.trigger.take());
    let pipeline = Pipeline::create(&meta, &output, &options, trigger, None).unwrap();
    let drain = Drain::new(
        script,
        pipeline.start().unwrap(),
        None,
        meta,
        (Instant::now(), options.duration),
        (plan.probe.counters, None),
        (plan.stalls.take(), None),
    );
    let mut reports = Reports::default();
    Recorded {
        summary: drain.run(Vec::new(), &mut target, &mut signals, &mut reports),
        target,
        reports,
        dir,
    }
}

fn record(options: Options, script: Script, signals: Arrivals) -> Recorded {
    let dir = tempfile::tempdir().unwrap();
    record_in(dir, options, script, RunningTarget::tasks(false), signals)
}

/// A command that ran as it would without a recorder.
fn command(argv: &[&str]) -> RunningTarget {
    let conditions = Conditions {
        user: None,
        preserve_environment: true,
        preload: None,
        mask: Signals::block().unwrap().original(),
        nice: system::nice(),
        oom_score: None,
    };
    let argv: Vec<_> = argv.iter().map(Into::into).collect();
    RunningTarget::command(Command::spawn(&argv, conditions, |_| Ok(())).unwrap(), None)
}

#[test]
fn a_recording_ends_with_its_tasks() {
    let script = Script {
        pending: Some(("read", 4)),
        ..Script::of([("write", 3), ("read", 0), ("write", 2)])
    };
    let done = record(Options::default(), script, Arrivals::default());
    let totals = &done.summary().totals;
    assert_eq!((totals.seen, totals.stored, totals.lost), (9, 9, 0));
    assert_eq!(done.reports.ended, 1);
    assert_eq!(done.reports.warnings, [""; 0]);
    let session = done.session();
    assert_eq!(session.rows("syscalls"), 9);
    let meta = session.meta();
    assert_eq!((meta.state, meta.exit_status), (State::Complete, None));
    // Three turns, of which one found nothing.
    assert_eq!(meta.cost.drains, 2);
}

#[test]
fn a_command_that_ends_at_once_is_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let target = command(&["sh", "-c", "exit 3"]);
    let mut signals = Arrivals::default();
    let mut done = record_in(
        dir,
        Options::default(),
        Script::default(),
        target,
        Arrivals::default(),
    );
    assert_eq!(done.summary().totals.seen, 0);
    assert_eq!(done.session().meta().exit_status, Some(3));
    assert_eq!(done.target.wait(&mut signals), Some(3));
}

#[test]
fn a_signal_ends_a_recording() {
    for (from_terminal, told) in [(true, false), (false, true)] {
        let script = Script {
            endless: true,
            pending: Some(("read", 4)),
            ..Script::of([("write", 3)])
        };
        let signals = Arrivals(vec![(3, signal(SIGINT, from_terminal))], 0);
        let done = record(Options::default(), script, signals);
        assert_eq!(done.summary().totals.stored, 7);
        assert_eq!(done.target.told_to_end(), told);
    }
}

#[test]
fn a_signal_goes_to_the_command_first() {
    let dir = tempfile::tempdir().unwrap();
    let signals = Arrivals(vec![(2, signal(SIGTERM, false))], 0);
    let done = record_in(
        dir,
        Options::default(),
        Script::default(),
        command(&["sleep", "100"]),
        signals,
    );
    assert_eq!(done.session().meta().exit_status, Some(128 + SIGTERM));
}

#[test]
fn a_recording_ends_after_its_time() {
    let options = Options {
        duration: Some(Duration::from_millis(250)),
        ..Options::default()
    };
    let script = Script {
        endless: true,
        ..Script::of([("write", 3)])
    };
    let done = record(options, script, Arrivals::default());
    assert!(done.summary().duration >= Duration::from_millis(250));
    assert_eq!(done.summary().totals.stored, 3);
    let progress = done.reports.progress.last().unwrap();
    assert!(progress.seen == 3 && done.reports.progress.len() <= 3);
}

#[test]
fn calls_without_room_in_the_rings_are_counted() {
    let script = Script {
        lost: 5,
        ..Script::of([("write", 3)])
    };
    let done = record(Options::default(), script, Arrivals::default());
    let totals = &done.summary().totals;
    assert_eq!((totals.seen, totals.stored, totals.lost), (8, 3, 5));
    assert_eq!(done.summary().lost_in_rings, 5);
    assert_eq!(done.session().rows("losses"), 1);
}

#[test]
fn counters_stand_for_calls() {
    let key = ShedKey {
        cpu: 0,
        syscall: Syscall::index_of("read").unwrap() as u32,
        pid: 10,
        file: 0,
    };
    let value = ShedValue {
        count: 6,
        ..ShedValue::parse(&[0; ShedValue::SIZE]).unwrap()
    };
    let options = Options {
        detail: Detail::Counters { by_file: false },
        ..Options::default()
    };
    let script = Script {
        counted: vec![(key, value)],
        ..Script::default()
    };
    let done = record(options, script, Arrivals::default());
    let totals = &done.summary().totals;
    assert_eq!((totals.seen, totals.stored, totals.counted), (6, 0, 6));
    assert!(done.session().rows("counters") > 0);
}

/// Entries that take longer than the writer waits for rows.
fn more_than_a_part() -> impl Iterator<Item = Calls> {
    (0..150).map(|_| ("write", 2))
}

#[test]
fn rows_that_cannot_be_written_are_lost() {
    let dir = tempfile::tempdir().unwrap();
    let table = session_in(dir.path()).join("syscalls");
    let script = Script {
        at: Some((
            10,
            Box::new(move || fs::remove_dir_all(&table).expect("remove")),
        )),
        ..Script::of(more_than_a_part())
    };
    let target = RunningTarget::tasks(false);
    let done = record_in(dir, Options::default(), script, target, Arrivals::default());
    let totals = &done.summary().totals;
    assert!(totals.lost > 0 && totals.stored > 0, "{totals:?}");
    assert_eq!((totals.seen, totals.stored + totals.lost), (300, 300));
    let warnings = &done.reports.warnings;
    assert!(
        warnings.iter().any(|w| w.contains("syscalls")),
        "{warnings:?}"
    );
}

#[test]
fn a_session_that_cannot_be_closed_keeps_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let json = session_in(dir.path()).join("session.json");
    let in_the_way = json.clone();
    let script = Script {
        at: Some((
            10,
            Box::new(move || {
                fs::remove_file(&in_the_way).expect("remove");
                fs::create_dir(&in_the_way).expect("create");
            }),
        )),
        ..Script::of(more_than_a_part())
    };
    let target = RunningTarget::tasks(false);
    let done = record_in(dir, Options::default(), script, target, Arrivals::default());
    let error = done.summary.as_ref().unwrap_err();
    assert!(error.to_string().contains("session.json"), "{error}");
    fs::remove_dir(json).unwrap();
    assert_eq!(done.session().rows("syscalls"), 300);
}

#[test]
fn rows_and_signals_make_copies() {
    let options = Options {
        keep: vec![KeepLimit::Time(Duration::from_secs(60))],
        save_when: Some(SaveWhen {
            condition: "syscall = 'fsync'".into(),
            max_saves: 1,
            pause: Duration::from_millis(1),
        }),
        ..Options::default()
    };
    let calls = [("write", 3), ("fsync", 1)].into_iter();
    let script = Script::of(calls.chain(more_than_a_part()).chain([("fsync", 1)]));
    let signals = Arrivals(vec![(120, signal(SIGUSR1, false))], 0);
    let done = record(options, script, signals);
    let copies: Vec<(&str, u64)> = done
        .reports
        .saves
        .iter()
        .map(|save| {
            let copy = Session::open(Path::new(&save.path)).unwrap();
            (save.because.as_str(), copy.rows("syscalls"))
        })
        .collect();
    let [("syscall = 'fsync'", first), ("signal", second)] = copies[..] else {
        panic!("{copies:?}");
    };
    assert!(4 <= first && first < second && second < 305, "{copies:?}");
    assert_eq!(done.session().rows("syscalls"), 305);
    assert!(!done.target.told_to_end());
}

/// A call that hangs is reported once, and saved because of, while it hangs.
#[test]
fn calls_in_flight_make_copies() {
    let options = Options {
        keep: vec![KeepLimit::Time(Duration::from_secs(60))],
        save_when: Some(SaveWhen {
            condition: "in_flight > 1s".into(),
            max_saves: 5,
            pause: Duration::from_millis(1),
        }),
        ..Options::default()
    };
    let call = |tid, ts_ns| InFlight {
        ts_ns,
        pid: u32::MAX,
        tid,
        syscall: "fsync",
        operation: None,
    };
    let script = Script {
        hangs: vec![
            call(7, monotonic_ns() - 30_000_000_000),
            call(8, monotonic_ns() + 3_600_000_000_000),
        ],
        ..Script::of(more_than_a_part())
    };
    let done = record(options, script, Arrivals::default());
    let [stall] = &done.reports.stalls[..] else {
        panic!("{:?}", done.reports.stalls);
    };
    assert!(
        stall.contains("thread 7") && stall.contains("for 30"),
        "{stall}"
    );
    let because: Vec<&str> = done
        .reports
        .saves
        .iter()
        .map(|s| s.because.as_str())
        .collect();
    assert_eq!(because, [format!("in_flight > 1s: {stall}")]);
}

#[test]
fn old_rows_are_dropped() {
    let options = Options {
        keep: vec![KeepLimit::Time(Duration::from_millis(600))],
        ..Options::default()
    };
    let script = Script::of((0..350).map(|_| ("write", 2)));
    let done = record(options, script, Arrivals::default());
    let totals = &done.summary().totals;
    assert!(totals.expired > 0 && totals.stored > 0, "{totals:?}");
    assert_eq!((totals.seen, totals.stored + totals.expired), (700, 700));
}
