//! `./do fuzz`: feeds damaged inputs to fathom for a while and says where it panics, hangs, takes
//! too much memory or gives an answer that it must not give.
//!
//! Every case follows from three things: the target, a seed and a number; and from the corpus,
//! which is made once and kept. So a failure is repeated by its name, `TARGET:SEED:CASE`.
//!
//! Cases run in worker processes (module `worker`), since a panic in a thread of a library, a hang
//! or an allocation cannot be caught reliably within one. The supervisor (module `supervise`)
//! starts them, watches them, and goes on behind a case that failed.

// A step of the fuzzer itself that fails ends it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod corpus;
mod mutate;
mod supervise;
mod targets;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use fathom_model::tables::SCHEMA_VERSION;
use targets::TARGETS;

const USAGE: &str = "usage: fathom-fuzz [OPTIONS] [TARGET...]
       fathom-fuzz [OPTIONS] --replay TARGET:SEED:CASE

  --seconds N     how long each target runs (45)
  --seed N        the seed; without it one is drawn, and printed
  --corpus DIR    inputs to mutate; made when DIR is not there (target/fuzz-VERSION,
                  by the version of the tables)

FATHOM_BIN names the program where it is not the one that was built with this.
";

/// What to do.
struct Options {
    seconds: u64,
    seed: u64,
    corpus: PathBuf,
    targets: Vec<String>,
    replay: Option<(String, u64, u64)>,
    /// For a worker: first case, and where it notes what it does.
    worker: Option<(u64, PathBuf)>,
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprint!("fathom-fuzz: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if let Some((first, notes)) = &options.worker {
        return worker::run(&options.targets[0], &options, *first, notes);
    }
    corpus::make(&options.corpus);
    if let Some((target, seed, case)) = &options.replay {
        return worker::replay(target, *seed, *case, &options.corpus);
    }
    supervise::run(&options)
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        seconds: 45,
        seed: fastrand::u64(..1 << 32),
        corpus: fathom_tests::environment::build_dir().join(format!("fuzz-{SCHEMA_VERSION}")),
        targets: Vec::new(),
        replay: None,
        worker: None,
    };
    let (mut first, mut notes) = (0, None);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        let number = |text: String| text.parse().map_err(|_| format!("no number: {text}"));
        match arg.as_str() {
            "--seconds" => options.seconds = number(value()?)?,
            "--seed" => options.seed = number(value()?)?,
            "--corpus" => {
                options.corpus = std::path::absolute(value()?).map_err(|e| e.to_string())?;
            }
            "--replay" => options.replay = Some(case_named(&value()?)?),
            "--first" => first = number(value()?)?,
            "--notes" => notes = Some(value()?.into()),
            target if TARGETS.contains(&target) => options.targets.push(arg.clone()),
            _ => return Err(format!("neither an option nor a target: {arg}")),
        }
    }
    options.worker = notes.map(|notes| (first, notes));
    if options.targets.is_empty() {
        options.targets = TARGETS.map(String::from).to_vec();
    }
    Ok(options)
}

/// `TARGET:SEED:CASE`.
fn case_named(text: &str) -> Result<(String, u64, u64), String> {
    let parts: Vec<&str> = text.split(':').collect();
    let [target, seed, case] = parts[..] else {
        return Err(format!("no TARGET:SEED:CASE: {text}"));
    };
    if !TARGETS.contains(&target) {
        return Err(format!("there is no target {target}"));
    }
    match (seed.parse(), case.parse()) {
        (Ok(seed), Ok(case)) => Ok((target.to_string(), seed, case)),
        _ => Err(format!("no TARGET:SEED:CASE: {text}")),
    }
}
