//! The same from the pyramid: in time that does not grow with the calls.

use std::collections::HashMap;

use arrow::array::{Array, Float64Array};
use fathom_query::zoom::Request;

use super::{Asked, Found, Kind, MANY, together};
use crate::api::tiles;
use crate::columns::{flags, numbers, texts};
use crate::error::ApiError;
use crate::selection::Selection;
use crate::view::Reader;

/// Sums from the pyramid: the time does not grow with the number of calls. Percentiles come from
/// histograms by powers of two, and a file or thread may lack calls of buckets in which it was not
/// among the 64 with the most time. `None` for keys that the pyramid does not separate.
pub(super) fn of_pyramid(
    reader: &Reader,
    selection: &Selection,
    kind: &Kind,
    asked: &Asked,
) -> Result<Option<Found>, ApiError> {
    let Some(by) = kind.by else {
        return Ok(None);
    };
    let window = selection.window(reader.started_at_ns(), reader.span());
    let answer = reader.zoom.query(&Request {
        from_ns: Some(window.from),
        to_ns: Some(window.to),
        // The more buckets, the more keys have cells of their own.
        pixels: 256,
        by,
        filter: selection.filter.for_calls(reader.db(), window.from)?,
        top: Some(usize::MAX),
        latency: true,
        busy: false,
        faults: asked.faults,
        max_rows: Some(0),
    })?;
    if answer.blocks == 0 {
        // Rows answered, as they do for filters: then they may as well do it exactly.
        return Ok(None);
    }
    let rows = &answer.rows;
    let Some((key, _)) = tiles::key_columns(by) else {
        return Ok(None);
    };
    let (keys, rest) = (texts(rows, key)?, flags(rows, "rest")?);
    let histograms = tiles::latencies(rows)?;
    let column = |name: &str| numbers(rows, name);
    let (calls, errors) = (column("calls")?, column("errors")?);
    let (bytes, time) = (column("bytes")?, column("total_ns")?);
    if calls.iter().flatten().sum::<f64>() < MANY {
        // The window has few of the calls in its files: rows answer as fast.
        return Ok(None);
    }
    let (read, written) = (column("bytes_read")?, column("bytes_written")?);
    let longest = column("max_ns")?;
    let faults = match asked.faults {
        true => Some((column("faults")?, column("fault_ns")?)),
        false => None,
    };
    let mut sums: HashMap<Option<&str>, Sums> = HashMap::new();
    for i in (0..rows.num_rows()).filter(|i| !rest.value(*i)) {
        let optional = |a: &Float64Array| a.is_valid(i).then(|| a.value(i));
        let row = Sums {
            calls: calls.value(i),
            errors: errors.value(i),
            bytes: bytes.value(i),
            read: optional(&read),
            written: optional(&written),
            time: time.value(i),
            faults: faults.as_ref().map_or(0.0, |faults| faults.0.value(i)),
            fault_time: faults.as_ref().map_or(0.0, |faults| faults.1.value(i)),
            longest: longest.value(i),
            histogram: histograms.get(i).cloned().unwrap_or_default(),
        };
        let key = keys.is_valid(i).then(|| keys.value(i));
        sums.entry(key).or_default().merge(&row);
    }
    let total = sums.len();
    let all_ns = sums.values().map(|sum| sum.time).sum();
    let all_fault_ns = sums.values().map(|sum| sum.fault_time).sum();
    let mut sums: Vec<(Option<&str>, Sums)> = sums.into_iter().collect();
    let rank = |s: &Sums| match asked.sort {
        "calls" => s.calls,
        "bytes" => s.bytes,
        "errors" => s.errors,
        "max_ns" => s.longest,
        "p99_ns" => s.percentile(0.99).unwrap_or(0.0),
        _ => s.time + s.fault_time,
    };
    let groups = match asked.together {
        true => together::take(reader, kind, &mut sums, rank)?,
        false => Vec::new(),
    };
    sums.sort_by(|a, b| rank(&b.1).total_cmp(&rank(&a.1)).then(a.0.cmp(&b.0)));
    let mut found = Found {
        total,
        all_ns,
        all_fault_ns,
        with_faults: asked.faults,
        ..Found::default()
    };
    let mut together = Vec::new();
    for (all, place) in groups {
        let at = sums.partition_point(|(_, of)| rank(of) >= rank(&all));
        if at < asked.limit {
            together.push((at, place));
        }
        sums.insert(at, (None, all));
    }
    found.together = asked.together.then_some(together);
    sums.truncate(asked.limit);
    for (key, sums) in sums {
        found.keys.push(key.map(str::to_string));
        found.calls.push(Some(sums.calls));
        found.errors.push(Some(sums.errors));
        // The pyramid counts errors of all kinds.
        found.failures.push((sums.errors == 0.0).then_some(0.0));
        found.bytes.push(Some(sums.bytes));
        found.bytes_read.push(sums.read);
        found.bytes_written.push(sums.written);
        found.time_ns.push(Some(sums.time));
        found.p50_ns.push(sums.percentile(0.5));
        found.p99_ns.push(sums.percentile(0.99));
        found.max_ns.push(Some(sums.longest));
        found.faults.push(Some(sums.faults));
        found.fault_ns.push(Some(sums.fault_time));
    }
    Ok(Some(found))
}

pub(super) const HISTOGRAM: usize = 40;

pub(crate) struct Sums {
    calls: f64,
    errors: f64,
    bytes: f64,
    read: Option<f64>,
    written: Option<f64>,
    time: f64,
    faults: f64,
    fault_time: f64,
    pub(crate) longest: f64,
    pub(super) histogram: Vec<f64>,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            calls: 0.0,
            errors: 0.0,
            bytes: 0.0,
            read: Some(0.0),
            written: Some(0.0),
            time: 0.0,
            faults: 0.0,
            fault_time: 0.0,
            longest: 0.0,
            histogram: Vec::new(),
        }
    }
}

impl Sums {
    pub(super) fn merge(&mut self, more: &Self) {
        self.calls += more.calls;
        self.errors += more.errors;
        self.bytes += more.bytes;
        self.read = self.read.zip(more.read).map(|(a, b)| a + b);
        self.written = self.written.zip(more.written).map(|(a, b)| a + b);
        self.time += more.time;
        self.faults += more.faults;
        self.fault_time += more.fault_time;
        self.longest = self.longest.max(more.longest);
        self.add(&more.histogram);
    }

    /// Adds a histogram.
    pub(crate) fn add(&mut self, histogram: &[f64]) {
        self.histogram.resize(HISTOGRAM, 0.0);
        for (sum, n) in self.histogram.iter_mut().zip(histogram) {
            *sum += n;
        }
    }

    /// The duration that a part of the calls, of 1, does not exceed: spread evenly over
    /// the entry of the histogram that it falls into.
    pub(crate) fn percentile(&self, part: f64) -> Option<f64> {
        let all: f64 = self.histogram.iter().sum();
        let wanted = all * part;
        let mut passed = 0.0;
        for (power, count) in self.histogram.iter().enumerate() {
            if *count > 0.0 && passed + count >= wanted {
                let low = 2f64.powi(power as i32);
                let inside = (wanted - passed) / count;
                return Some((low + low * inside).floor().min(self.longest));
            }
            passed += count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_in_their_entry() {
        let mut sums = Sums {
            longest: 3000.0,
            ..Sums::default()
        };
        assert_eq!(sums.percentile(0.5), None);
        sums.histogram.resize(HISTOGRAM, 0.0);
        sums.histogram[4] = 98.0;
        sums.histogram[11] = 2.0;
        // From 16 to below 32, and from 2048 to the longest.
        assert_eq!(sums.percentile(0.49), Some(24.0));
        assert_eq!(sums.percentile(0.99), Some(3000.0));
        assert_eq!(sums.percentile(1.0), Some(3000.0));
    }
}
