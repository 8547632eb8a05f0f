//! A process that runs cases of one target.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::targets::{self, Target};
use crate::{Options, mutate};

/// What an input may make of a worker's memory, MiB.
pub const MEMORY_MIB: u64 = 2048;

/// What threads have panicked with since it was last asked.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Runs cases from `first` on until the time is over or one fails. Writes the number of each to
/// the file `notes` before it begins, and what it broke when it fails, so that the supervisor knows
/// both even if this process dies.
pub fn run(name: &str, options: &Options, first: u64, notes: &Path) -> ExitCode {
    note_panics();
    let mut target = targets::open(name, &options.corpus);
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut case = first;
    loop {
        note(notes, case, "");
        if Instant::now() >= end {
            return ExitCode::SUCCESS;
        }
        if let Err(what) = one(target.as_mut(), name, options.seed, case) {
            note(notes, case, &what);
            keep(target.as_mut(), &options.corpus, name, options.seed, case);
            return ExitCode::FAILURE;
        }
        case += 1;
    }
}

/// Runs one case and says what it does.
pub fn replay(name: &str, seed: u64, case: u64, corpus: &Path) -> ExitCode {
    note_panics();
    let mut target = targets::open(name, corpus);
    let result = one(target.as_mut(), name, seed, case);
    let kept = keep(target.as_mut(), corpus, name, seed, case);
    println!("{name}:{seed}:{case}: input in {kept}");
    match result {
        Ok(()) => {
            println!("fine");
            ExitCode::SUCCESS
        }
        Err(what) => {
            println!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn one(target: &mut dyn Target, name: &str, seed: u64, case: u64) -> Result<(), String> {
    let mut rng = mutate::rng(name, seed, case);
    // The panic itself is in PANICS.
    let result = catch_unwind(AssertUnwindSafe(|| target.case(&mut rng)));
    let panics: Vec<String> = PANICS
        .lock()
        .map(|mut p| p.drain(..).collect())
        .unwrap_or_default();
    if !panics.is_empty() {
        return Err(format!("panic: {}", panics.join("; ")));
    }
    let mib = targets::peak_mib("self").unwrap_or(0);
    if mib > MEMORY_MIB {
        return Err(format!("{mib} MiB of memory, more than {MEMORY_MIB}"));
    }
    result.unwrap_or_else(|_| Err("panic".to_string()))
}

fn note_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if let Ok(mut panics) = PANICS.lock() {
            panics.push(panic.to_string().replace('\n', " "));
        }
    }));
}

fn note(notes: &Path, case: u64, what: &str) {
    fs::write(notes, format!("{case}\n{what}\n")).expect("notes");
}

/// Keeps the input of a case, and says where.
fn keep(target: &mut dyn Target, corpus: &Path, name: &str, seed: u64, case: u64) -> String {
    let dir = corpus.with_extension("failures");
    fs::create_dir_all(&dir).expect("directory of failures");
    let path = dir.join(format!("{name}-{seed}-{case}"));
    target.keep(&path);
    path.display().to_string()
}
