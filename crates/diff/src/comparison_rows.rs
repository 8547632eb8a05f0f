//! Pairs rows of both sides, with drafts of their weight.

use std::collections::BTreeMap;

use fathom_model::failure::{ErrorKind, error_kind};

use crate::comparability::Comparable;
use crate::matching::{Matcher, NO_FILE};
use crate::profile::{Latency, Operation, Profile};
use crate::result::{Metric, Row, Status, Tables};
use crate::spread::{self, QUANTILES, Spread};
use crate::tail;
use crate::verdict::{Draft, Judge, Kind};

/// Part of the whole from which on a figure is tested: of times, and of counts.
const MATTERS_TIME: f64 = 0.01;
const MATTERS_COUNT: f64 = 0.001;

/// Sums of one session in one row.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    calls: f64,
    errors: f64,
    asked: f64,
    bytes: f64,
    time: f64,
    variance: f64,
}

impl Sums {
    fn add(&mut self, operation: &Operation, spread: Option<&Spread>) {
        let calls = operation.calls as f64;
        let time = operation.time_ns as f64;
        self.calls += calls;
        self.errors += operation.errors as f64;
        self.asked += operation.asked as f64;
        self.bytes += operation.bytes as f64;
        self.time += time;
        // The fewer of a call's calls are in this row, the less certain is their mean;
        // nothing is known of a call that was made rarely.
        let relative = spread.map_or(1.0, |s| {
            let part = (s.calls as f64 / calls.max(1.0)).max(1.0);
            s.mean * s.mean * part
        });
        self.variance += time * time * relative;
    }

    fn of(self, metric: Metric) -> f64 {
        match metric {
            Metric::Errors => self.errors,
            Metric::AskedBytes => self.asked,
            Metric::Bytes => self.bytes,
            Metric::Time => self.time,
            _ => self.calls,
        }
    }

    /// Standard error of the logarithm of the time, where it is small enough to be one.
    fn time_error(self) -> Option<f64> {
        let error = self.variance.sqrt() / self.time.max(1.0);
        (self.time > 0.0 && error < 1.5).then_some(error)
    }
}

/// Name, what goes with it.
type Key = (String, Option<String>);
/// Sums by session, before and after.
type Sides<T> = [Vec<T>; 2];

/// Rows that are not yet judged.
#[derive(Debug)]
pub(crate) struct DraftRow {
    name: String,
    on: Option<String>,
    names: Option<[usize; 2]>,
    status: Status,
    pub(crate) figures: Vec<Draft>,
    /// By which rows are ordered.
    weight: f64,
}

#[derive(Debug)]
pub(crate) struct DraftTables {
    pub(crate) syscalls: Vec<DraftRow>,
    pub(crate) classes: Vec<DraftRow>,
    pub(crate) files: Vec<DraftRow>,
    pub(crate) operations: Vec<DraftRow>,
    pub(crate) processes: Vec<DraftRow>,
    pub(crate) layers: Vec<DraftRow>,
    pub(crate) devices: Vec<DraftRow>,
    pub(crate) errors: Vec<DraftRow>,
}

impl DraftTables {
    pub(crate) fn all(&mut self) -> [&mut Vec<DraftRow>; 8] {
        [
            &mut self.syscalls,
            &mut self.classes,
            &mut self.files,
            &mut self.operations,
            &mut self.processes,
            &mut self.layers,
            &mut self.devices,
            &mut self.errors,
        ]
    }

    /// The judged figure.
    pub(crate) fn finish(self) -> Tables {
        let finish = |mut rows: Vec<DraftRow>| -> Vec<Row> {
            rows.sort_by(|a, b| b.weight.total_cmp(&a.weight));
            let row = |row: DraftRow| Row {
                name: row.name,
                on: row.on,
                names: row.names,
                status: row.status,
                figures: row.figures.into_iter().map(|d| d.figure).collect(),
            };
            rows.into_iter().map(row).collect()
        };
        Tables {
            syscalls: finish(self.syscalls),
            classes: finish(self.classes),
            files: finish(self.files),
            operations: finish(self.operations),
            processes: finish(self.processes),
            layers: finish(self.layers),
            devices: finish(self.devices),
            errors: finish(self.errors),
        }
    }
}

/// Both sides, and what is known of them.
pub(crate) struct Work<'a> {
    sides: [&'a [Profile]; 2],
    pub(crate) judge: Judge,
    pub(crate) matcher: Matcher,
    pub(crate) comparable: Comparable,
    /// By session and call.
    spreads: Sides<BTreeMap<&'a str, Spread>>,
    /// By session: what figures that grow with time are divided by.
    scales: Sides<f64>,
    /// Means of a side of all calls together, the larger one.
    whole: Sums,
}

impl<'a> Work<'a> {
    pub(crate) fn new(sides: [&'a [Profile]; 2]) -> Self {
        let comparable = Comparable::new(sides[0], sides[1]);
        let matcher = Matcher::new(sides[0], sides[1]);
        let sessions = [sides[0].len(), sides[1].len()];
        let rates = sides
            .iter()
            .all(|side| side.iter().all(|p| p.gaps.open_ended));
        let scale = |p: &Profile| {
            if rates {
                (p.duration_ns as f64 / 1e9).max(1e-9)
            } else {
                1.0
            }
        };
        let repeated = sessions.iter().any(|n| *n > 1);
        let spreads = |p: &'a Profile| -> BTreeMap<&'a str, Spread> {
            let of = |(name, l): (&'a String, _)| Some((name.as_str(), spread::of(l)?));
            match repeated {
                true => BTreeMap::new(),
                false => p.latencies.iter().filter_map(of).collect(),
            }
        };
        let mut work = Self {
            sides,
            judge: Judge::new(sessions, rates, &[], &[]),
            matcher,
            comparable,
            spreads: sides.map(|side| side.iter().map(spreads).collect()),
            scales: sides.map(|side| side.iter().map(scale).collect()),
            whole: Sums::default(),
        };
        let operations = work.sums(|o| (o.syscall.clone(), Some(work.file(o))));
        let first = |side: &Vec<Sums>, scales: &[f64]| {
            side.first()
                .map_or(0.0, |s| s.calls / scales.first().copied().unwrap_or(1.0))
        };
        let counts: Vec<(f64, f64)> = operations
            .values()
            .map(|[b, a]| (first(b, &work.scales[0]), first(a, &work.scales[1])))
            .collect();
        work.judge = Judge::new(sessions, rates, &counts, &work.medians());
        let all = work.sums(|_| (String::new(), None));
        for side in all.values().flatten() {
            for session in side {
                let whole = &mut work.whole;
                whole.calls = whole.calls.max(session.calls);
                whole.errors = whole.errors.max(session.errors);
                whole.asked = whole.asked.max(session.asked);
                whole.bytes = whole.bytes.max(session.bytes);
                whole.time = whole.time.max(session.time);
            }
        }
        work
    }

    fn file(&self, operation: &Operation) -> String {
        match self.comparable.no_files {
            true => NO_FILE.to_owned(),
            false => self.matcher.file(operation.path.as_deref()),
        }
    }

    /// Medians of durations by call, of the first session of each side.
    fn medians(&self) -> Vec<(f64, f64)> {
        let [Some(before), Some(after)] = self.sides.map(<[Profile]>::first) else {
            return Vec::new();
        };
        let [b, a] = [&self.spreads[0], &self.spreads[1]].map(|s| s.first());
        let (Some(b), Some(a)) = (b, a) else {
            return Vec::new();
        };
        let median = |p: &Profile, name: &str| p.latencies.get(name)?.p50_ns.map(|ns| ns as f64);
        let both = b.keys().filter(|name| a.contains_key(*name));
        both.filter_map(|name| Some((median(before, name)?, median(after, name)?)))
            .collect()
    }

    /// Sums of operations by a key, for every session.
    fn sums(&self, key: impl Fn(&Operation) -> Key) -> BTreeMap<Key, Sides<Sums>> {
        let mut out: BTreeMap<Key, Sides<Sums>> = BTreeMap::new();
        let empty = || self.sides.map(|side| vec![Sums::default(); side.len()]);
        for (s, side) in self.sides.iter().enumerate() {
            for (i, profile) in side.iter().enumerate() {
                let spreads = self.spreads.get(s).and_then(|side| side.get(i));
                for operation in &profile.operations {
                    let row = out.entry(key(operation)).or_insert_with(empty);
                    if let Some(sums) = row.get_mut(s).and_then(|side| side.get_mut(i)) {
                        let spread = spreads.and_then(|s| s.get(operation.syscall.as_str()));
                        sums.add(operation, spread);
                    }
                }
            }
        }
        out
    }

    /// A figure that grows with time, by second where need be.
    fn draft(&self, metric: Metric, row: &Sides<Sums>, kind: Kind) -> Draft {
        let scaled = |side: usize| -> Vec<f64> {
            let scales = self.scales.get(side).into_iter().flatten();
            let row = row.get(side).into_iter().flatten();
            row.zip(scales)
                .map(|(sums, scale)| sums.of(metric) / scale)
                .collect()
        };
        let samples = [scaled(0), scaled(1)];
        if let Some(why) = self.comparable.metric(metric) {
            return Draft::not_comparable(metric, samples, why.to_owned());
        }
        let largest = row
            .iter()
            .flatten()
            .map(|s| s.of(metric))
            .fold(0.0, f64::max);
        let part = if metric == Metric::Time {
            MATTERS_TIME
        } else {
            MATTERS_COUNT
        };
        let matters = largest >= self.whole.of(metric) * part;
        self.judge.draft(metric, samples, kind, matters)
    }

    fn figures(&self, metrics: &[Metric], row: &Sides<Sums>) -> Vec<Draft> {
        self.figures_failed(metrics, row, ErrorKind::Other)
    }

    /// The same where it is known what the errors say.
    fn figures_failed(
        &self,
        metrics: &[Metric],
        row: &Sides<Sums>,
        failed: ErrorKind,
    ) -> Vec<Draft> {
        let first = |side: usize| {
            row.get(side)
                .and_then(|s| s.first())
                .copied()
                .unwrap_or_default()
        };
        let (b, a) = (first(0), first(1));
        let figure = |metric: &Metric| {
            let kind = match metric {
                Metric::Time => Kind::Timed([b.time_error(), a.time_error()]),
                Metric::Errors => Kind::Failed([b.errors, a.errors], failed),
                _ => Kind::Counted([b.calls, a.calls]),
            };
            self.draft(*metric, row, kind)
        };
        metrics.iter().map(figure).collect()
    }

    fn row(&self, (name, on): Key, row: &Sides<Sums>, mut figures: Vec<Draft>) -> DraftRow {
        let there = |side: usize| {
            row.get(side)
                .into_iter()
                .flatten()
                .any(|s| s.calls > 0.0 || s.errors > 0.0)
        };
        let status = match (there(0), there(1)) {
            (false, true) => Status::New,
            (true, false) => Status::Gone,
            _ => Status::Both,
        };
        if status != Status::Both
            && let Some(why) = self.comparable.one_sided()
        {
            for draft in &mut figures {
                *draft = Draft::not_comparable(
                    draft.figure.metric,
                    draft.figure.samples.clone(),
                    why.to_owned(),
                );
            }
        }
        let largest = |of: fn(&Sums) -> f64| row.iter().flatten().map(of).fold(0.0, f64::max);
        let part = |value: f64, whole: f64| if whole > 0.0 { value / whole } else { 0.0 };
        for draft in &mut figures {
            let metric = match draft.figure.metric {
                metric if metric.is_duration() => Metric::Time,
                metric => metric,
            };
            let most = row
                .iter()
                .flatten()
                .map(|s| s.of(metric))
                .fold(0.0, f64::max);
            draft.weight = part(most, self.whole.of(metric)).min(1.0);
        }
        let names = match &on {
            Some(on) => self.matcher.members(on),
            None => self.matcher.members(&name),
        };
        DraftRow {
            weight: part(largest(|s| s.time), self.whole.time)
                + part(largest(|s| s.calls), self.whole.calls),
            name,
            on,
            names,
            status,
            figures,
        }
    }

    fn table(&self, sums: BTreeMap<Key, Sides<Sums>>, metrics: &[Metric]) -> Vec<DraftRow> {
        let row = |(key, sums): (Key, Sides<Sums>)| {
            let figures = self.figures(metrics, &sums);
            self.row(key, &sums, figures)
        };
        sums.into_iter().map(row).collect()
    }

    /// Figures of all calls together.
    pub(crate) fn totals(&self) -> Vec<Draft> {
        use Metric::*;
        let sums = self.sums(|_| (String::new(), None));
        let empty = self.sides.map(|side| vec![Sums::default(); side.len()]);
        let all = sums.values().next().unwrap_or(&empty);
        let mut drafts = self.figures(&[Calls, Errors, AskedBytes, Bytes, Time], all);
        for (metric, of) in [
            (
                FirstCall,
                (|p| p.first_call_ns) as fn(&Profile) -> Option<i64>,
            ),
            (LastCall, |p| p.last_call_ns),
        ] {
            let samples = self
                .sides
                .map(|side| side.iter().filter_map(of).map(|ns| ns as f64).collect());
            drafts.push(self.judge.draft(metric, samples, Kind::Shared, true));
        }
        drafts
    }

    /// Figures of durations of a call.
    fn percentiles(&self, name: &str, matters: bool) -> Vec<Draft> {
        let one = |(index, metric): (usize, Metric)| {
            let of = |p: &Profile| {
                let latency = p.latencies.get(name)?;
                // With fewer calls it is the longest of them.
                if metric != Metric::P50
                    && !tail::has_beyond(latency, QUANTILES.get(index).copied()?)
                {
                    return None;
                }
                let value = match metric {
                    Metric::P50 => latency.p50_ns,
                    Metric::P90 => latency.p90_ns,
                    Metric::P99 => latency.p99_ns,
                    _ => tail::quantile(latency, QUANTILES.get(index).copied()?)
                        .map(|ln| ln.exp() as i64),
                };
                value.map(|ns| ns as f64)
            };
            let samples: [Vec<f64>; 2] =
                self.sides.map(|side| side.iter().filter_map(of).collect());
            if let Some(why) = self.comparable.metric(metric) {
                return Draft::not_comparable(metric, samples, why.to_owned());
            }
            if samples.iter().any(Vec::is_empty) {
                let why = "a side has too few of these calls".to_owned();
                return Draft::not_comparable(metric, samples, why);
            }
            let error = |side: usize| {
                let spread = self.spreads.get(side)?.first()?.get(name)?;
                spread.quantile(index)
            };
            self.judge
                .draft(metric, samples, Kind::Timed([error(0), error(1)]), matters)
        };
        let metrics = [Metric::P50, Metric::P90, Metric::P99, Metric::P999];
        let enough = |metric: Metric, draft: &Draft| {
            metric != Metric::P999 || draft.figure.samples.iter().all(|side| !side.is_empty())
        };
        let mut drafts: Vec<Draft> = (0..)
            .zip(metrics)
            .map(|(index, metric)| (metric, one((index, metric))))
            .filter(|(metric, draft)| enough(*metric, draft))
            .map(|(_, draft)| draft)
            .collect();
        drafts.extend(self.longest(name));
        drafts.extend(matters.then(|| self.tail(name)).flatten());
        drafts
    }

    /// The longest call of each side, where one has too few calls for a 99th percentile.
    fn longest(&self, name: &str) -> Option<Draft> {
        let all = || self.sides.iter().flat_map(|side| side.iter());
        let mut known = all().filter_map(|p| p.latencies.get(name));
        if known.all(|latency| tail::has_beyond(latency, 0.99)) {
            return None;
        }
        let longest = |side: &[Profile]| {
            let latencies = side.iter().filter_map(|p| p.latencies.get(name));
            latencies.filter_map(|l| l.max_ns).max().map(|ns| ns as f64)
        };
        let samples = self.sides.map(|side| longest(side).into_iter().collect());
        let why = "a side has fewer than 100 of these calls".to_owned();
        Some(Draft::not_comparable(Metric::Longest, samples, why))
    }

    /// Calls beyond a threshold.
    fn tail(&self, name: &str) -> Option<Draft> {
        if self.comparable.metric(Metric::Tail).is_some() {
            return None;
        }
        let latencies = |side: &'a [Profile]| -> Vec<&'a Latency> {
            side.iter().filter_map(|p| p.latencies.get(name)).collect()
        };
        let [before, after] = self.sides.map(latencies);
        let tail = match (before.as_slice(), after.as_slice()) {
            ([b], [a]) if !self.judge.repeated() => tail::one(b, a, self.judge.tail_factor()),
            (b, a) => tail::several([b, a]),
        };
        Some(self.judge.tail(tail?))
    }

    /// The time that a call spent below itself, by layer and activity: difference of the means of
    /// the sides, nanoseconds.
    pub(crate) fn layers_of(&self, call: &str) -> Vec<([String; 2], f64)> {
        let mut sums: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        for ((side, scales), sign) in self.sides.iter().zip(&self.scales).zip([-1.0, 1.0]) {
            for (profile, scale) in side.iter().zip(scales) {
                let own = |l: &&crate::profile::LayerVisit| l.call.as_deref() == Some(call);
                for visit in profile.layers.iter().filter(own) {
                    if self.comparable.layer(&visit.layer).is_none() {
                        *sums.entry((&visit.layer, &visit.name)).or_default() +=
                            sign * visit.self_ns as f64 / scale / side.len() as f64;
                    }
                }
            }
        }
        let named =
            |((layer, name), ns): ((&str, &str), f64)| ([layer.to_owned(), name.to_owned()], ns);
        sums.into_iter().map(named).collect()
    }

    /// Figures of everything else.
    pub(crate) fn tables(&self) -> DraftTables {
        use Metric::*;
        let syscalls = self.sums(|o| (o.syscall.clone(), None));
        let syscalls = syscalls.into_iter().map(|(key, sums)| {
            let mut figures = self.figures(&[Calls, Errors, Bytes, Time], &sums);
            let time = sums.iter().flatten().map(|s| s.time).fold(0.0, f64::max);
            figures.extend(self.percentiles(&key.0, time >= self.whole.time * MATTERS_TIME));
            self.row(key, &sums, figures)
        });
        DraftTables {
            syscalls: syscalls.collect(),
            classes: self.table(
                self.sums(|o| (o.class.clone(), None)),
                &[Calls, Bytes, Time],
            ),
            files: match self.comparable.no_files {
                true => Vec::new(),
                false => self.table(
                    self.sums(|o| (self.file(o), None)),
                    &[Calls, Errors, Bytes, Time],
                ),
            },
            operations: self.table(
                self.sums(|o| (o.syscall.clone(), Some(self.file(o)))),
                &[Calls, Bytes, Time],
            ),
            processes: self.processes(),
            layers: self.layers(),
            devices: self.devices(),
            errors: self.errors(),
        }
    }

    /// Rows that are not made of operations: what each session has of a key.
    fn rows_of<T>(
        &self,
        of: impl Fn(&'a Profile) -> &'a [T],
        key: impl Fn(&T) -> Key,
        add: impl Fn(&T, &BTreeMap<&'a str, Spread>, &mut Sums),
    ) -> BTreeMap<Key, Sides<Sums>>
    where
        T: 'a,
    {
        let mut out: BTreeMap<Key, Sides<Sums>> = BTreeMap::new();
        for (s, side) in self.sides.iter().enumerate() {
            for (i, profile) in side.iter().enumerate() {
                let Some(spreads) = self.spreads.get(s).and_then(|side| side.get(i)) else {
                    continue;
                };
                for item in of(profile) {
                    let row = out.entry(key(item)).or_insert_with(|| {
                        self.sides.map(|side| vec![Sums::default(); side.len()])
                    });
                    if let Some(sums) = row.get_mut(s).and_then(|side| side.get_mut(i)) {
                        add(item, spreads, sums);
                    }
                }
            }
        }
        out
    }

    fn processes(&self) -> Vec<DraftRow> {
        let sums = self.rows_of(
            |p| &p.processes,
            |p| (self.matcher.process(&p.comm), None),
            |p, spreads, sums| sums.add(&p.operation, spreads.get(p.operation.syscall.as_str())),
        );
        self.table(sums, &[Metric::Calls, Metric::Bytes, Metric::Time])
    }

    fn errors(&self) -> Vec<DraftRow> {
        let sums = self.rows_of(
            |p| &p.errors,
            |e| (e.syscall.clone(), Some(e.errno.clone())),
            |e, _, sums| sums.errors += e.calls as f64,
        );
        let row = |(key, sums): (Key, Sides<Sums>)| {
            let said = error_kind(&key.0, key.1.as_deref().unwrap_or_default());
            let mut figures = self.figures_failed(&[Metric::Errors], &sums, said);
            if let Some(why) = self.comparable.error_names() {
                for draft in &mut figures {
                    *draft = Draft::not_comparable(
                        Metric::Errors,
                        draft.figure.samples.clone(),
                        why.to_owned(),
                    );
                }
            }
            let weight = sums.iter().flatten().map(|s| s.errors).fold(0.0, f64::max);
            DraftRow {
                weight,
                ..self.row(key, &sums, figures)
            }
        };
        sums.into_iter().map(row).collect()
    }

    /// Rows of resources that all programs on the machine share.
    fn shared(
        &self,
        sums: BTreeMap<Key, Sides<Sums>>,
        metrics: &[Metric],
        lacking: impl Fn(&Key) -> Option<String>,
    ) -> Vec<DraftRow> {
        let row = |(key, sums): (Key, Sides<Sums>)| {
            let lacking = lacking(&key);
            let figure = |metric: &Metric| {
                let draft = self.draft(*metric, &sums, Kind::Shared);
                match &lacking {
                    Some(why) => Draft::not_comparable(*metric, draft.figure.samples, why.clone()),
                    None => draft,
                }
            };
            let figures = metrics.iter().map(figure).collect();
            self.row(key, &sums, figures)
        };
        sums.into_iter().map(row).collect()
    }

    fn layers(&self) -> Vec<DraftRow> {
        let sums = self.rows_of(
            |p| &p.layers,
            |l| (l.name.clone(), Some(l.layer.clone())),
            |l, _, sums| {
                sums.calls += l.visits as f64;
                sums.time += l.self_ns as f64;
            },
        );
        let lacking = |(_, layer): &Key| {
            let why = layer
                .as_deref()
                .and_then(|layer| self.comparable.layer(layer));
            why.map(str::to_owned)
        };
        self.shared(sums, &[Metric::Calls, Metric::Time], lacking)
    }

    fn devices(&self) -> Vec<DraftRow> {
        let sums = self.rows_of(
            |p| &p.devices,
            |d| (d.op.clone(), Some(d.device.clone())),
            |d, _, sums| {
                sums.calls += d.requests as f64;
                sums.errors += d.errors as f64;
                sums.bytes += d.bytes as f64;
                sums.time += d.time_ns as f64;
            },
        );
        let lacking = |_: &Key| self.comparable.devices().map(str::to_owned);
        let metrics = [Metric::Calls, Metric::Errors, Metric::Bytes, Metric::Time];
        self.shared(sums, &metrics, lacking)
    }
}
