//! `./do bench`: what recording costs the traced program, against running
//! untraced, against the floor that any tracer has to pay, and against other
//! tracers.
//!
//! All variants of a workload run in turn, over and over, in one run of this
//! program, and are compared within it: machines differ, and so does one machine
//! from hour to hour.

mod floor;
mod goals;
mod options;
mod output;
mod plot;
mod process;
mod programs;
mod session;
mod stats;
mod tracer;
mod workload;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::options::Options;
use crate::output::{Outcome, Report};
use crate::tracer::Tracer;
use crate::workload::{Bench, Sample, Workload};

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fathom-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("the probes need root: run it again as root");
    }
    let bench = Bench::new(options)?;
    let mut report = Report::new(options);
    for workload in options.workloads() {
        if let Some(reason) = workload.missing() {
            println!("{}: does not run: {reason}\n", workload.name());
            continue;
        }
        let outcomes = measure(&bench, workload, &options.tracers(), options.repetitions())
            .with_context(|| format!("workload {}", workload.name()))?;
        report.add(workload, outcomes);
        print!("{}", report.last_table());
    }
    print!("{}", goals::table(&report, &bench)?);
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text + "\n").with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Runs every variant once a repetition, in the same order: slow drift of the
/// machine meets all of them.
fn measure(
    bench: &Bench,
    workload: Workload,
    tracers: &[Tracer],
    repetitions: usize,
) -> Result<Vec<Outcome>> {
    let mut outcomes: Vec<Outcome> = tracers.iter().map(|t| Outcome::new(*t)).collect();
    for outcome in &mut outcomes {
        outcome.unavailable = outcome.tracer.missing(bench);
    }
    // Fills the caches that all of them use.
    bench.run(workload, Tracer::None)?;
    for repetition in 1..=repetitions {
        for outcome in &mut outcomes {
            if outcome.unavailable.is_some() {
                continue;
            }
            bench.note(&format!(
                "{}, {} ({repetition} of {repetitions})",
                workload.name(),
                outcome.tracer.name()
            ));
            match bench.run(workload, outcome.tracer) {
                Ok(sample) => outcome.samples.push(sample),
                // Other tracers may fail here; what is measured must not.
                Err(error) if outcome.tracer.is_other() => {
                    outcome.unavailable = Some(format!("{error:#}"));
                }
                Err(error) => return Err(error.context(outcome.tracer.name())),
            }
        }
    }
    for outcome in &outcomes {
        check(workload, outcome)?;
    }
    Ok(outcomes)
}

/// Fails when a recorder's counts are not those of the workload.
fn check(workload: Workload, outcome: &Outcome) -> Result<()> {
    for Sample { made, counted, .. } in &outcome.samples {
        if let (Some(made), Some(counted)) = (made, counted)
            && made != counted
        {
            bail!(
                "{} under {}: the program made {made} calls, but rows and losses are {counted}",
                workload.name(),
                outcome.tracer.name()
            );
        }
    }
    Ok(())
}
