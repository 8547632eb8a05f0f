//! The metrics: each is a row of one list, from which OpenMetrics text and OTLP are made.

use std::time::Instant;

use fathom_probe::system;

use crate::status::Status;
use crate::sums::{Durations, Sums};

/// Upper ends of the buckets of histograms, powers of 2 of nanoseconds: from a microsecond to
/// 17 seconds, closer where devices answer.
const EDGES: [u32; 19] = [
    10, 12, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30, 32, 34,
];

/// A metric.
pub struct Metric<'a> {
    /// Its name, without the suffixes of OpenMetrics.
    pub name: &'static str,
    /// Its unit, as OpenMetrics has it: the name ends with it.
    pub unit: &'static str,
    /// Its meaning.
    pub help: &'static str,
    /// Its samples.
    pub samples: Samples<'a>,
}

/// Labels with their values.
#[derive(Clone, Debug, Default)]
pub struct LabelValues<'a> {
    /// Names and values.
    pub all: Vec<(&'static str, &'a str)>,
    /// When their sums began at 0, nanoseconds since 1970, if that was not the start of the agent.
    pub since_ns: Option<u64>,
}

impl<'a> From<Vec<(&'static str, &'a str)>> for LabelValues<'a> {
    fn from(all: Vec<(&'static str, &'a str)>) -> Self {
        Self {
            all,
            since_ns: None,
        }
    }
}

/// The samples of a metric.
pub enum Samples<'a> {
    /// Sums that only grow.
    Counter(Vec<(LabelValues<'a>, Number)>),
    /// Numbers that go up and down.
    Gauge(Vec<(LabelValues<'a>, Number)>),
    /// Distributions of durations.
    Histogram(Vec<(LabelValues<'a>, Histogram)>),
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole one.
    Whole(u64),
    /// Nanoseconds, shown as seconds.
    Nanoseconds(u128),
    /// Any.
    Real(f64),
}

/// A distribution of durations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// How many.
    pub count: u64,
    /// Together, nanoseconds.
    pub sum_ns: u128,
    /// Upper ends, nanoseconds inclusive, and how many are above the end before and up to it.
    /// Those above the last are the rest.
    pub buckets: Vec<(u64, u64)>,
}

impl Histogram {
    fn of(durations: &Durations) -> Self {
        let mut from = 0;
        let buckets = EDGES.map(|edge| {
            let to = edge as usize;
            let count = durations.buckets[from..to].iter().sum();
            from = to;
            // A duration of 2^b is in the bucket above.
            ((1 << edge) - 1, count)
        });
        Self {
            count: durations.count,
            sum_ns: durations.sum_ns,
            buckets: buckets.to_vec(),
        }
    }
}

/// All metrics, now.
pub fn metrics<'a>(sums: &'a Sums, status: &'a Status) -> Vec<Metric<'a>> {
    let mut durations = Vec::new();
    let mut bytes = Vec::new();
    let mut errors = Vec::new();
    for (labels, purpose, of) in sums.calls() {
        let labels = || {
            let mut all = labels.clone();
            all.push(("operation", purpose.name()));
            LabelValues {
                all,
                since_ns: of.since_ns,
            }
        };
        durations.push((labels(), Histogram::of(&of.durations)));
        bytes.push((labels(), Number::Whole(of.bytes)));
        errors.push((labels(), Number::Whole(of.errors)));
    }
    let mut requests = Vec::new();
    let mut waits = Vec::new();
    let mut moved = Vec::new();
    let mut failed = Vec::new();
    for (device, operation, of) in sums.devices() {
        let labels = || LabelValues::from(vec![("device", device), ("operation", operation)]);
        requests.push((labels(), Histogram::of(&of.durations)));
        waits.push((labels(), Number::Nanoseconds(of.wait_ns)));
        moved.push((labels(), Number::Whole(of.bytes)));
        failed.push((labels(), Number::Whole(of.errors)));
    }
    let findings = sums.findings.iter().map(|((rule, severity), count)| {
        let labels = vec![("rule", rule.as_str()), ("severity", *severity)];
        (labels.into(), Number::Whole(*count))
    });
    let one = |number: u64| vec![(LabelValues::default(), Number::Whole(number))];
    let (cpu_ns, _) = system::own_usage();
    let counter = |name, unit, help, samples| Metric {
        name,
        unit,
        help,
        samples: Samples::Counter(samples),
    };
    let gauge = |name, unit, help, samples| Metric {
        name,
        unit,
        help,
        samples: Samples::Gauge(samples),
    };
    let histogram = |name, help, samples| Metric {
        name,
        unit: "seconds",
        help,
        samples: Samples::Histogram(samples),
    };
    vec![
        histogram(
            "fathom_call_duration_seconds",
            "Storage calls that returned, by duration.",
            durations,
        ),
        counter(
            "fathom_call_bytes",
            "bytes",
            "Bytes moved by storage calls.",
            bytes,
        ),
        counter(
            "fathom_call_errors",
            "",
            "Storage calls that failed.",
            errors,
        ),
        histogram(
            "fathom_device_request_duration_seconds",
            "Requests to block devices that completed, by time from the file system to completion.",
            requests,
        ),
        counter(
            "fathom_device_wait_seconds",
            "seconds",
            "Time of requests in queues before the device's driver had them.",
            waits,
        ),
        counter(
            "fathom_device_bytes",
            "bytes",
            "Bytes moved by requests to block devices.",
            moved,
        ),
        counter(
            "fathom_device_errors",
            "",
            "Requests to block devices that failed.",
            failed,
        ),
        counter(
            "fathom_findings",
            "",
            "Problems that the rules found.",
            findings.collect(),
        ),
        counter(
            "fathom_calls_seen",
            "",
            "Calls that the kernel saw.",
            one(status.seen),
        ),
        counter(
            "fathom_calls_lost",
            "",
            "Calls that found no room in a ring: they are in no other metric.",
            one(status.lost),
        ),
        counter(
            "fathom_calls_without_labels",
            "",
            "Calls with labels \"other\", because there were too many different ones.",
            one(sums.overflowed()),
        ),
        counter(
            "fathom_recordings",
            "",
            "Recordings that the agent started.",
            one(status.recordings),
        ),
        counter(
            "fathom_unrecorded_seconds",
            "seconds",
            "Time between two recordings of the agent: calls then are in no metric.",
            vec![(
                LabelValues::default(),
                Number::Nanoseconds(status.unrecorded_ns),
            )],
        ),
        counter(
            "fathom_saves",
            "",
            "Sessions saved from the ring.",
            one(status.saves),
        ),
        counter(
            "fathom_save_failures",
            "",
            "Sessions that could not be saved.",
            one(status.failed_saves),
        ),
        counter(
            "fathom_push_failures",
            "",
            "Times at which metrics could not be sent to the collector.",
            one(status.failed_pushes),
        ),
        counter(
            "fathom_logs",
            "",
            "Findings and slow requests that the collector took.",
            one(status.sent_logs),
        ),
        counter(
            "fathom_log_failures",
            "",
            "Times at which findings or slow requests could not be sent to the collector.",
            one(status.failed_logs),
        ),
        counter(
            "fathom_logs_dropped",
            "",
            "Findings and slow requests that found no room, or that the collector refused.",
            one(status.dropped_logs),
        ),
        gauge(
            "fathom_logs_waiting",
            "",
            "Findings and slow requests that are not sent yet.",
            one(status.waiting_logs),
        ),
        counter(
            "fathom_slow_request_failures",
            "",
            "Saved sessions whose slow requests could not be read.",
            one(status.failed_slow_requests),
        ),
        counter("fathom_ships", "", "Sessions shipped.", one(status.ships)),
        counter(
            "fathom_ship_failures",
            "",
            "Times at which a session could not be shipped.",
            one(status.failed_ships),
        ),
        counter(
            "fathom_ships_missed",
            "",
            "Sessions that were removed before they were shipped.",
            one(status.missed_ships),
        ),
        gauge(
            "fathom_ships_waiting",
            "",
            "Closed sessions that are not shipped yet.",
            one(status.waiting_ships),
        ),
        counter(
            "fathom_cpu_seconds",
            "seconds",
            "Processor time of the agent.",
            vec![(LabelValues::default(), Number::Nanoseconds(cpu_ns.into()))],
        ),
        gauge(
            "fathom_resident_bytes",
            "bytes",
            "Memory of the agent.",
            resident_bytes()
                .map(|n| (LabelValues::default(), Number::Whole(n)))
                .into_iter()
                .collect(),
        ),
        gauge(
            "fathom_ring_bytes",
            "bytes",
            "Bytes of the session that is being recorded.",
            one(status.bytes),
        ),
        gauge(
            "fathom_waiting_bytes",
            "bytes",
            "Bytes of records that wait to be decoded.",
            one(status.waiting),
        ),
        gauge(
            "fathom_ring_peak_ratio",
            "ratio",
            "Highest share of the kernel's rings that was in use.",
            vec![(LabelValues::default(), Number::Real(status.ring_peak))],
        ),
        gauge(
            "fathom_healthy",
            "",
            "1 if the recording goes on.",
            one(status.is_healthy(Instant::now()).into()),
        ),
    ]
}

/// Resident memory of this process.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_exact() {
        let mut durations = Durations::default();
        for (power, count) in [(0, 1), (9, 2), (10, 4), (11, 8), (33, 16), (34, 32)] {
            durations.buckets[power] = count;
            durations.count += count;
        }
        let histogram = Histogram::of(&durations);
        let of = |end: u64| histogram.buckets.iter().find(|b| b.0 == end).unwrap().1;
        assert_eq!((of(1023), of(4095)), (3, 12));
        assert_eq!(histogram.buckets.last(), Some(&((1 << 34) - 1, 16)));
        let below: u64 = histogram.buckets.iter().map(|b| b.1).sum();
        assert_eq!((below, histogram.count), (31, 63));
    }
}
