//! Medians and ratios, as tables and as JSON.

use std::fmt::Write;

use serde::Serialize;

use crate::options::Options;
use crate::plot;
use crate::stats::median;
use crate::tracer::Tracer;
use crate::workload::{Sample, Workload};

/// All samples of one tracer.
pub struct Outcome {
    /// What the workload ran under.
    pub tracer: Tracer,
    /// One a repetition.
    pub samples: Vec<Sample>,
    /// Why there are none.
    pub unavailable: Option<String>,
}

impl Outcome {
    /// Without samples yet.
    pub fn new(tracer: Tracer) -> Outcome {
        Outcome {
            tracer,
            samples: Vec::new(),
            unavailable: None,
        }
    }

    fn median(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        median(self.samples.iter().filter_map(of))
    }
}

/// Everything that was measured.
#[derive(Serialize)]
pub struct Report {
    /// Nothing may be concluded from its numbers.
    quick: bool,
    repetitions: usize,
    threads: u32,
    kernel: String,
    processors: usize,
    workloads: Vec<Table>,
}

#[derive(Serialize)]
struct Table {
    workload: &'static str,
    unit: &'static str,
    tracers: Vec<Line>,
}

/// Medians of a tracer.
#[derive(Serialize)]
pub struct Line {
    tracer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable: Option<String>,
    /// Median of operations a second.
    pub rate: Option<f64>,
    /// Median over repetitions of the rate as a share of the untraced one.
    pub ratio: Option<f64>,
    /// Median of nanoseconds added a call.
    added_ns: Option<f64>,
    /// Median of nanoseconds of processor time added to the traced thread a
    /// call.
    added_cpu_ns: Option<f64>,
    /// Median of that as a multiple of what the floor adds.
    pub of_floor: Option<f64>,
    /// Median of nanoseconds in the tracer's programs in the kernel, a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    programs_ns: Option<f64>,
    events: Option<f64>,
    lost: Option<f64>,
    pub bytes_per_event: Option<f64>,
    /// Start-up left out, of each call, stored or not.
    pub recorder_cpu_ns_per_call: Option<f64>,
    recorder_cpu_ns_per_event: Option<f64>,
    recorder_peak_bytes: Option<f64>,
    samples: Vec<Sample>,
}

impl Report {
    /// An empty one.
    pub fn new(options: &Options) -> Report {
        let uname = rustix::system::uname();
        Report {
            quick: options.quick,
            repetitions: options.repetitions(),
            threads: options.threads,
            kernel: uname.release().to_string_lossy().into_owned(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            workloads: Vec::new(),
        }
    }

    /// Adds a workload. Repetitions are compared with the untraced run and the
    /// floor of the same round.
    pub fn add(&mut self, workload: Workload, outcomes: Vec<Outcome>) {
        let rates = |tracer: Tracer| -> Vec<f64> {
            let of = outcomes.iter().find(|o| o.tracer == tracer);
            of.map(|o| o.samples.iter().map(|s| s.rate).collect())
                .unwrap_or_default()
        };
        let untraced = rates(Tracer::None);
        let added = |rates: &[f64]| -> Vec<f64> {
            rates
                .iter()
                .zip(&untraced)
                .map(|(r, u)| 1e9 / r - 1e9 / u)
                .collect()
        };
        let cpu = |outcome: &Outcome| -> Vec<f64> {
            outcome
                .samples
                .iter()
                .filter_map(|s| s.cpu_ns_per_call)
                .collect()
        };
        let cpu_of = |tracer: Tracer| -> Vec<f64> {
            outcomes
                .iter()
                .find(|o| o.tracer == tracer)
                .map(cpu)
                .unwrap_or_default()
        };
        let cpu_untraced = cpu_of(Tracer::None);
        let cpu_added = |own: &[f64]| -> Vec<f64> {
            own.iter()
                .zip(&cpu_untraced)
                .map(|(own, none)| own - none)
                .collect()
        };
        let floor_added = cpu_added(&cpu_of(Tracer::Floor));
        let lines = outcomes
            .into_iter()
            .map(|outcome| {
                let rates: Vec<f64> = outcome.samples.iter().map(|s| s.rate).collect();
                let own = added(&rates);
                let own_cpu = cpu_added(&cpu(&outcome));
                let traced = outcome.tracer != Tracer::None;
                let calls = workload.counts_calls() && traced;
                let per_event = |value: fn(&Sample) -> Option<u64>| {
                    outcome.median(|s| Some(value(s)? as f64 / s.events.filter(|e| *e > 0)? as f64))
                };
                let whole = |value: fn(&Sample) -> Option<u64>| {
                    outcome.median(|s| value(s).map(|v| v as f64))
                };
                let ratios = rates.iter().zip(&untraced).map(|(r, u)| r / u);
                let of_floor = own_cpu
                    .iter()
                    .zip(&floor_added)
                    .map(|(own, floor)| own / floor);
                Line {
                    tracer: outcome.tracer.name(),
                    rate: median(rates.iter().copied()),
                    ratio: median(ratios).filter(|_| traced),
                    added_ns: median(own.iter().copied()).filter(|_| calls),
                    added_cpu_ns: median(own_cpu.iter().copied()).filter(|_| calls),
                    of_floor: median(of_floor).filter(|_| calls),
                    programs_ns: outcome.median(|s| s.programs_ns_per_call).filter(|_| calls),
                    events: whole(|s| s.events),
                    lost: whole(|s| s.lost),
                    bytes_per_event: per_event(|s| s.disk_bytes),
                    recorder_cpu_ns_per_call: outcome.median(|s| {
                        let recorded = s.session.filter(|recorded| recorded.calls > 0)?;
                        Some(recorded.cpu_ns as f64 / recorded.calls as f64)
                    }),
                    recorder_cpu_ns_per_event: per_event(|s| s.recorder_cpu_ns),
                    recorder_peak_bytes: whole(|s| s.recorder_peak_bytes),
                    samples: outcome.samples,
                    unavailable: outcome.unavailable,
                }
            })
            .collect();
        self.workloads.push(Table {
            workload: workload.name(),
            unit: workload.unit(),
            tracers: lines,
        });
    }

    /// The median of a tracer under a workload, of what `of` takes of its line.
    pub fn value(
        &self,
        workload: Workload,
        tracer: Tracer,
        of: impl Fn(&Line) -> Option<f64>,
    ) -> Option<f64> {
        let table = (self.workloads.iter()).find(|table| table.workload == workload.name())?;
        of(table
            .tracers
            .iter()
            .find(|line| line.tracer == tracer.name())?)
    }

    /// The workload added last, as an aligned table and a plot.
    pub fn last_table(&self) -> String {
        let Some(table) = self.workloads.last() else {
            return String::new();
        };
        let quick = if self.quick {
            ", quick: the numbers mean nothing"
        } else {
            ""
        };
        let mut text = format!(
            "{}: {}; medians of {} repetitions{quick}\n",
            table.workload, table.unit, self.repetitions
        );
        let width = table
            .tracers
            .iter()
            .map(|l| l.tracer.len())
            .max()
            .unwrap_or(0);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {:width$} {:>11} {:>7} {:>9} {:>9} {:>7} {:>8} {:>11} {:>9} {:>8} {:>9} {:>9}",
            "",
            "rate",
            "of none",
            "added ns",
            "cpu ns",
            "x floor",
            "prog ns",
            "events",
            "lost",
            "bytes/ev",
            "cpu ns/ev",
            "peak MiB"
        );
        for line in &table.tracers {
            let _ = match &line.unavailable {
                Some(reason) => {
                    let reason = reason.lines().next().unwrap_or_default();
                    writeln!(text, "  {:width$} does not run: {reason}", line.tracer)
                }
                None => writeln!(
                    text,
                    "  {:width$} {:>11} {:>7} {:>9} {:>9} {:>7} {:>8} {:>11} {:>9} {:>8} {:>9} {:>9}",
                    line.tracer,
                    number(line.rate, 0),
                    number(line.ratio, 3),
                    number(line.added_ns, 0),
                    number(line.added_cpu_ns, 0),
                    number(line.of_floor, 2),
                    number(line.programs_ns, 0),
                    number(line.events, 0),
                    number(line.lost, 0),
                    number(line.bytes_per_event, 1),
                    number(line.recorder_cpu_ns_per_event, 0),
                    number(line.recorder_peak_bytes.map(|b| b / f64::from(1 << 20)), 1),
                ),
            };
        }
        text.push_str("  speed, of untraced\n");
        let shares = (table.tracers.iter()).map(|line| (line.tracer.as_str(), line.ratio));
        text.push_str(&plot::bars(shares));
        text.push('\n');
        text
    }
}

/// A number, or a dash for one that was not measured.
fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"))
}
