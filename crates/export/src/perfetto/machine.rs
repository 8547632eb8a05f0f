//! Counters of the machine as a whole: table `machine`, and the time in which devices were busy.
//! They do not depend on the calls that are exported.

use std::collections::BTreeMap;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use fathom_query::Db;

use super::proto::{UNIT_BYTES, UNIT_COUNT, UNIT_PERCENT};
use crate::error::{ExportError, Result};
use crate::source::{Selection, integers, windows};

/// A value of a counter from a time on.
pub(super) struct Sample {
    pub name: String,
    pub unit: i32,
    pub at: i64,
    pub value: f64,
}

/// Columns, and the counters that show them as a share of the time of all processors.
const PROCESSORS: [(&str, &str); 5] = [
    ("user_ns", "processors in programs"),
    ("system_ns", "processors in the kernel"),
    ("interrupt_ns", "processors in interrupts"),
    ("iowait_ns", "processors idle with I/O pending"),
    ("steal_ns", "processors taken by the hypervisor"),
];
const IDLE: &str = "idle_ns";

/// As a share of the time that passed.
const STALLED: [(&str, &str); 3] = [
    ("cpu_stalled_ns", "stalled for a processor"),
    ("memory_stalled_ns", "stalled for memory"),
    ("io_stalled_ns", "stalled for I/O"),
];

/// At the end of the row.
const LEVELS: [(&str, &str, i32); 7] = [
    (
        "running_threads",
        "threads that run or want a processor",
        UNIT_COUNT,
    ),
    (
        "blocked_threads",
        "threads that wait for a device",
        UNIT_COUNT,
    ),
    ("available_bytes", "available memory", UNIT_BYTES),
    ("cached_bytes", "page cache", UNIT_BYTES),
    ("dirty_bytes", "dirty page cache", UNIT_BYTES),
    ("writeback_bytes", "page cache being written", UNIT_BYTES),
    ("swapped_bytes", "swapped memory", UNIT_BYTES),
];

/// Gives each value of table `machine` to `take`, row by row in the order of time.
pub(super) fn levels(
    db: &Db,
    selection: &Selection,
    mut take: impl FnMut(Sample) -> Result<()>,
) -> Result<()> {
    if db.columns("machine")?.is_empty() {
        return Ok(());
    }
    let (from, until) = selection.range();
    let names = [&PROCESSORS[..], &[(IDLE, "")], &STALLED[..]].concat();
    let names: Vec<&str> = names
        .iter()
        .map(|(column, _)| *column)
        .chain(LEVELS.iter().map(|(column, ..)| *column))
        .collect();
    let sql = format!(
        "SELECT ts_ns, ended_at_ns, {} FROM machine \
         WHERE ended_at_ns > {from} AND ts_ns < {until} ORDER BY ts_ns",
        names.join(", ")
    );
    let mut failed = Ok(());
    integers(db, &sql, |row| {
        if failed.is_ok() {
            failed = of_row(row, from, until).into_iter().try_for_each(&mut take);
        }
    })?;
    failed
}

/// The values of a row of the query above.
fn of_row(row: &[Option<i64>], from: i64, until: i64) -> Vec<Sample> {
    let [Some(begin), Some(end), columns @ ..] = row else {
        return Vec::new();
    };
    let Some((times, rest)) = columns.split_at_checked(PROCESSORS.len() + 1) else {
        return Vec::new();
    };
    let Some((stalled, levels)) = rest.split_at_checked(STALLED.len()) else {
        return Vec::new();
    };
    let percent = |name: &str, part: i64, whole: i64| Sample {
        name: name.into(),
        unit: UNIT_PERCENT,
        at: (*begin).max(from),
        value: part as f64 / whole as f64 * 100.0,
    };
    let mut made = Vec::new();
    let whole = times
        .iter()
        .flatten()
        .fold(0, |a: i64, b| a.saturating_add(*b));
    for ((_, name), time) in PROCESSORS.iter().zip(times) {
        if let Some(time) = time.filter(|_| whole > 0) {
            made.push(percent(name, time, whole));
        }
    }
    let passed = end.saturating_sub(*begin);
    for ((_, name), time) in STALLED.iter().zip(stalled) {
        if let Some(time) = time.filter(|_| passed > 0) {
            made.push(percent(name, time, passed));
        }
    }
    for ((_, name, unit), level) in LEVELS.iter().zip(levels) {
        if let Some(level) = level.filter(|_| *end < until) {
            made.push(Sample {
                name: (*name).into(),
                unit: *unit,
                at: *end,
                value: level as f64,
            });
        }
    }
    made
}

/// Gives the share of each slice of time in which a device had at least one request to `take`;
/// of a device in the order of time.
pub(super) fn busy(
    db: &Db,
    selection: &Selection,
    slice_ns: i64,
    mut take: impl FnMut(Sample) -> Result<()>,
) -> Result<()> {
    let columns = db.columns("block")?;
    let has = |name: &str| columns.iter().any(|(column, _)| column == name);
    if !["device", "issued_at_ns", "completed_at_ns"]
        .into_iter()
        .all(has)
    {
        return Ok(());
    }
    let (from, until) = selection.range();
    let wanted = format!(
        "block WHERE device IS NOT NULL AND completed_at_ns > {from} AND issued_at_ns < {until}"
    );
    let mut devices: BTreeMap<String, Busy> = BTreeMap::new();
    for window in windows(db, &format!("SELECT issued_at_ns AS ts_ns FROM {wanted}"))? {
        let sql = format!(
            "SELECT device::VARCHAR, issued_at_ns, completed_at_ns FROM {wanted} \
             AND issued_at_ns >= {} AND issued_at_ns < {} ORDER BY issued_at_ns",
            window.start, window.end
        );
        for batch in db.query(&sql)? {
            let batch = batch?;
            let [device, issued, completed] = batch.columns() else {
                return Err(ExportError::Column("device"));
            };
            let (Some(device), Some(issued), Some(completed)) = (
                device.as_string_opt::<i32>(),
                issued.as_primitive_opt::<Int64Type>(),
                completed.as_primitive_opt::<Int64Type>(),
            ) else {
                return Err(ExportError::Column("device"));
            };
            for i in 0..batch.num_rows() {
                let name = device.value(i);
                let (begin, end) = (issued.value(i).max(from), completed.value(i).min(until));
                if !devices.contains_key(name) {
                    devices.insert(name.to_owned(), Busy::new(slice_ns));
                }
                let Some(busy) = devices.get_mut(name) else {
                    continue;
                };
                for (at, share) in busy.add(begin, end) {
                    take(sample(name, at, share))?;
                }
            }
        }
    }
    for (name, mut busy) in devices {
        for (at, share) in busy.finish() {
            take(sample(&name, at, share))?;
        }
    }
    Ok(())
}

fn sample(device: &str, at: i64, share: f64) -> Sample {
    Sample {
        name: format!("busy share of {device}"),
        unit: UNIT_PERCENT,
        at,
        value: share * 100.0,
    }
}

/// Time in which at least one request was in a device, by slice of time.
struct Busy {
    slice_ns: i64,
    /// The end of the time that is counted so far.
    reached: i64,
    /// The slice that the newest request begins in, or a later one that it reaches into: its number
    /// and its nanoseconds. Slices before it are over.
    open: Option<(i64, i64)>,
}

impl Busy {
    fn new(slice_ns: i64) -> Self {
        Self {
            slice_ns: slice_ns.max(1),
            reached: i64::MIN,
            open: None,
        }
    }

    /// Adds a request, which begins no earlier than the one before; returns the beginnings of
    /// slices that are over, with their shares.
    fn add(&mut self, begin: i64, end: i64) -> Vec<(i64, f64)> {
        let mut over = Vec::new();
        let mut at = begin.max(self.reached);
        self.reached = self.reached.max(end);
        while at < end {
            let slice = at.div_euclid(self.slice_ns);
            let until = end.min((slice + 1).saturating_mul(self.slice_ns));
            match &mut self.open {
                Some((open, ns)) if *open == slice => *ns += until - at,
                _ => {
                    over.extend(self.close(slice));
                    self.open = Some((slice, until - at));
                }
            }
            at = until;
        }
        over
    }

    /// Ends the last slice.
    fn finish(&mut self) -> Vec<(i64, f64)> {
        self.close(i64::MAX)
    }

    /// Ends the open slice; the next one with a request is `next`. Slices between them are idle.
    fn close(&mut self, next: i64) -> Vec<(i64, f64)> {
        let Some((slice, ns)) = self.open.take() else {
            return Vec::new();
        };
        let begin = slice * self.slice_ns;
        let mut over = vec![(begin, ns as f64 / self.slice_ns as f64)];
        if next > slice + 1 {
            over.push((begin.saturating_add(self.slice_ns), 0.0));
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_at_once_count_once() {
        let mut busy = Busy::new(10);
        let mut told = Vec::new();
        for (begin, end) in [(101, 105), (103, 104), (104, 112), (135, 136), (136, 160)] {
            told.extend(busy.add(begin, end));
        }
        told.extend(busy.finish());
        let expected = [
            (100, 0.9),
            (110, 0.2),
            (120, 0.0),
            (130, 0.5),
            (140, 1.0),
            (150, 1.0),
            (160, 0.0),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn shares_hold_from_the_begin_and_levels_at_the_end() {
        let row: Vec<Option<i64>> = [100, 200, 30, 10, 0, 20, 0, 140, 50]
            .into_iter()
            .map(Some)
            .chain([None; 2])
            .chain([Some(3)])
            .chain([None; 6])
            .collect();
        let tell = |from, until| -> Vec<(String, i64, f64)> {
            of_row(&row, from, until)
                .into_iter()
                .map(|s| (s.name, s.at, s.value))
                .collect()
        };
        let all = tell(i64::MIN, i64::MAX);
        assert!(all.contains(&("processors in programs".into(), 100, 15.0)));
        assert!(all.contains(&("processors idle with I/O pending".into(), 100, 10.0)));
        assert!(all.contains(&("stalled for a processor".into(), 100, 50.0)));
        assert!(all.contains(&("threads that run or want a processor".into(), 200, 3.0)));
        // Nothing is exported for a null.
        assert_eq!(all.len(), 7);
        // Within a window from its begin on; the level after its end is none of it.
        let part = tell(150, 200);
        assert!(part.contains(&("processors in programs".into(), 150, 15.0)));
        assert_eq!(part.len(), 6);
    }
}
