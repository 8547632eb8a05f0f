//! Runs workers, watches them, and says what came of it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Options;
use crate::targets::tree;
use crate::worker::MEMORY_MIB;

/// A case that takes longer hangs. Far beyond what any takes, as machines are busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Failures of a target after which the rest of its time is not spent.
const ENOUGH: usize = 10;
/// Targets at a time.
const AT_ONCE: usize = 2;

/// What came of a target.
struct Outcome {
    target: String,
    cases: u64,
    failures: Vec<String>,
}

/// Fuzzes the targets, two at a time. The exit status is 1 when a case failed.
pub fn run(options: &Options) -> ExitCode {
    println!("seed {}", options.seed);
    let mut outcomes = Vec::new();
    for targets in options.targets.chunks(AT_ONCE) {
        thread::scope(|scope| {
            let running: Vec<_> = targets
                .iter()
                .map(|target| scope.spawn(move || fuzz(target, options)))
                .collect();
            for thread in running {
                outcomes.push(thread.join().expect("a thread that watches a worker"));
            }
        });
    }
    let mut failed = false;
    for outcome in &outcomes {
        for failure in &outcome.failures {
            println!("{failure}");
            failed = true;
        }
        let cases = outcome.cases;
        let failures = outcome.failures.len();
        println!("{}: {cases} cases, {failures} failed", outcome.target);
        if cases == 0 {
            println!("{}: no case ran", outcome.target);
            failed = true;
        }
    }
    ExitCode::from(u8::from(failed))
}

fn fuzz(target: &str, options: &Options) -> Outcome {
    let notes = tempfile::NamedTempFile::new().expect("notes");
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut outcome = Outcome {
        target: target.to_string(),
        cases: 0,
        failures: Vec::new(),
    };
    let mut first = 0;
    loop {
        let left = end.saturating_duration_since(Instant::now()).as_secs();
        if left == 0 || outcome.failures.len() >= ENOUGH {
            return outcome;
        }
        fs::write(notes.path(), "").expect("notes");
        let mut worker = start(target, options, left, first, notes.path());
        let what = watch(&mut worker, notes.path());
        let (case, said) = read(notes.path()).unwrap_or((first, String::new()));
        outcome.cases += case - first;
        let Some(what) = what else { return outcome };
        let what = if said.is_empty() { what } else { said };
        let name = format!("{target}:{}:{case}", options.seed);
        outcome
            .failures
            .push(format!("FAILED {name}: {what}\n  ./do fuzz replay {name}"));
        first = case + 1;
    }
}

fn start(target: &str, options: &Options, seconds: u64, first: u64, notes: &Path) -> Child {
    // A bound in the kernel, beyond the one that is checked: a database maps more than it uses.
    let bytes = (MEMORY_MIB << 20) * 8;
    Command::new("prlimit")
        .arg(format!("--as={bytes}"))
        .arg(std::env::current_exe().expect("this program"))
        .args([
            "--seconds",
            &seconds.to_string(),
            "--seed",
            &options.seed.to_string(),
        ])
        .args(["--first", &first.to_string(), "--corpus"])
        .arg(&options.corpus)
        .arg("--notes")
        .arg(notes)
        .arg(target)
        .env("RUST_BACKTRACE", "0")
        .spawn()
        .expect("a worker")
}

/// Waits for the worker's end; says what was wrong with it if something was.
fn watch(worker: &mut Child, notes: &Path) -> Option<String> {
    let mut case = None;
    let mut since = Instant::now();
    loop {
        if let Some(status) = worker.try_wait().expect("a worker") {
            return (!status.success()).then(|| format!("the process ended: {status}"));
        }
        let now = read(notes).map(|(case, _)| case);
        if now != case {
            (case, since) = (now, Instant::now());
        }
        if since.elapsed() > PATIENCE {
            // With the program that it may have started.
            for pid in tree(worker.id()).iter().filter_map(|pid| pid.parse().ok()) {
                if let Some(pid) = Pid::from_raw(pid) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            worker.wait().expect("a worker");
            return Some(format!("hangs: no end in {} s", PATIENCE.as_secs()));
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The case that a worker is at, and what it has broken.
fn read(notes: &Path) -> Option<(u64, String)> {
    let text = fs::read_to_string(notes).ok()?;
    let (case, what) = text.split_once('\n')?;
    Some((case.parse().ok()?, what.trim().to_string()))
}
