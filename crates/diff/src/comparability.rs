//! Data that a side lacks, so that it cannot be compared.

use fathom_model::layers::Layer;
use std::collections::BTreeSet;

use fathom_model::units::count;

use crate::profile::{Gaps, Profile};
use crate::result::Metric;

/// Data that cannot be compared.
#[derive(Debug, Default)]
pub(crate) struct Comparable {
    /// Why counts and sums cannot be.
    counts: Option<String>,
    times: Option<String>,
    percentiles: Option<String>,
    asked: Option<String>,
    error_names: Option<String>,
    findings: Option<String>,
    devices: Option<String>,
    /// Layers that a side does not have, and why.
    layers: Vec<(&'static str, String)>,
    /// Why a row that one side does not have says nothing.
    one_sided: Option<String>,
    /// Files are not known on a side.
    pub no_files: bool,
    /// Sentences for the reader.
    pub notes: Vec<String>,
}

const NAMES: [&str; 2] = ["before", "after"];

/// Names that table `slices` has of what is recorded with this layer.
fn in_slices(layer: Layer) -> impl Iterator<Item = &'static str> {
    let all = Layer::ALL
        .iter()
        .filter(move |other| other.comes_with(layer));
    all.map(|layer| layer.name())
}

impl Comparable {
    pub fn new(before: &[Profile], after: &[Profile]) -> Self {
        let mut out = Self::default();
        let sides = [before, after];
        for (name, side) in NAMES.iter().zip(sides) {
            for profile in side {
                out.session(name, profile);
            }
        }
        out.counted(sides);
        out.layers(sides);
        out.options(sides);
        out
    }

    fn session(&mut self, side: &str, profile: &Profile) {
        let gaps = &profile.gaps;
        let session = format!("{} ({side})", profile.name);
        let number = |n: u64| count(i64::try_from(n).unwrap_or(i64::MAX));
        if gaps.gone > 0 {
            let why = format!(
                "{} calls of {session} were dropped or never stored",
                number(gaps.gone)
            );
            self.notes
                .push(format!("{why}: counts, bytes and sums are not comparable"));
            self.counts.get_or_insert(why);
        }
        if gaps.lost > 0 && !gaps.counters_only {
            let why = format!("{} calls of {session} have no rows", number(gaps.lost));
            self.notes.push(format!(
                "{why}: counts, bytes and sums include them; percentiles, names of errors and bytes asked for are not \
                 comparable"
            ));
            self.lacks_rows(&why);
        }
        if gaps.counted > 0 && !gaps.counters_only {
            let why = format!(
                "{} calls of {session} were counted and have no rows",
                number(gaps.counted)
            );
            self.notes.push(format!(
                "{why}: counts, bytes and sums include them; percentiles, names of errors, bytes asked for, files and \
                 layers are not comparable"
            ));
            self.lacks_rows(&why);
            let names = Layer::chosen().flat_map(in_slices);
            self.layers.extend(names.map(|name| (name, why.clone())));
            // A counted call has its file, but not the path that it was given.
            self.no_files = true;
        }
        if gaps.counters_only {
            let why = format!("{session} was recorded with --detail counters");
            self.notes.push(format!(
                "{why}: percentiles, names of errors and bytes asked for are not comparable"
            ));
            self.lacks_rows(&why);
        }
        if gaps.no_durations {
            let format = gaps.imported.as_deref().unwrap_or("fathom");
            let why = format!("the log of {format} that {session} was made of has no durations");
            self.notes.push(format!("{why}: times are not comparable"));
            self.times.get_or_insert(why.clone());
            self.percentiles.get_or_insert(why);
        }
        if gaps.layers_lost > 0 {
            let why = format!(
                "{} records of layers of {session} were lost",
                number(gaps.layers_lost)
            );
            self.notes
                .push(format!("{why}: layers and devices are not comparable"));
            let names = Layer::chosen().flat_map(in_slices);
            self.layers.extend(names.map(|name| (name, why.clone())));
            self.devices.get_or_insert(why);
        }
        if matches!(gaps.detail.as_str(), "raw" | "counters")
            && !profile.operations.iter().any(|o| o.path.is_some())
        {
            self.notes.push(format!(
                "{session} has no files: calls are compared by name only"
            ));
            self.no_files = true;
        }
        if gaps.live {
            self.notes.push(format!(
                "{session} is not complete: it is compared as it is so far"
            ));
        }
        if gaps.problems > 0 {
            self.notes.push(format!(
                "{session} is damaged or was not closed: see fathom report"
            ));
        }
    }

    fn lacks_rows(&mut self, why: &str) {
        for slot in [
            &mut self.percentiles,
            &mut self.error_names,
            &mut self.asked,
        ] {
            slot.get_or_insert(why.to_owned());
        }
    }

    /// Calls of one side were counted: rules do not see them, and calls by path do not have them.
    fn counted(&mut self, sides: [&[Profile]; 2]) {
        let counted = |side: &[Profile]| side.iter().any(|p| p.gaps.counted > 0);
        let side = match sides.map(counted) {
            [true, false] => "before",
            [false, true] => "after",
            _ => return,
        };
        let why = format!("calls were counted {side} only");
        self.notes.push(format!(
            "{why}: findings are not comparable, and calls are compared by name only"
        ));
        self.findings.get_or_insert(why);
        self.no_files = true;
    }

    fn layers(&mut self, sides: [&[Profile]; 2]) {
        let missing = |side: &[Profile], layer| side.iter().any(|p| !p.gaps.layers.has(layer));
        for layer in Layer::chosen() {
            let lacking = [missing(sides[0], layer), missing(sides[1], layer)];
            let which = match lacking {
                [true, false] => "before",
                [false, true] => "after",
                _ => continue,
            };
            let why = format!("layer {} was not recorded {which}", layer.name());
            self.notes.push(format!("{why}: it is not comparable"));
            self.layers
                .extend(in_slices(layer).map(|name| (name, why.clone())));
            if layer == Layer::Block {
                self.devices.get_or_insert(why);
            }
        }
    }

    fn options(&mut self, sides: [&[Profile]; 2]) {
        let differ = |of: &dyn Fn(&Gaps) -> String| {
            let values = |side: &[Profile]| -> BTreeSet<String> {
                side.iter().map(|p| of(&p.gaps)).collect()
            };
            let (b, a) = (values(sides[0]), values(sides[1]));
            (b != a).then(|| {
                let list = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(" or ");
                (list(b), list(a))
            })
        };
        if let Some((b, a)) = differ(&|g| g.selection.join(",")) {
            let why = format!("--syscalls was {b} before, {a} after");
            self.notes.push(format!(
                "{why}: calls that one side does not have are not comparable"
            ));
            self.one_sided.get_or_insert(why);
        }
        // Process ids differ from run to run.
        let filters = |g: &Gaps| {
            let kept = g
                .filters
                .iter()
                .filter(|f| !f.starts_with("--pid ") && !f.starts_with("--tid "));
            kept.cloned().collect::<Vec<_>>().join(" ")
        };
        if let Some((b, a)) = differ(&filters) {
            let none = |text: String| {
                if text.is_empty() {
                    "none".to_owned()
                } else {
                    text
                }
            };
            let why = format!("filters were {} before, {} after", none(b), none(a));
            self.notes.push(format!(
                "{why}: what they left out looks as if it had not been there"
            ));
            self.one_sided.get_or_insert(why);
        }
        if let Some((b, a)) = differ(&|g| g.detail.clone()) {
            self.notes.push(format!(
                "--detail was {b} before, {a} after: calls without a descriptor may miss their file"
            ));
        }
        if let Some((b, a)) = differ(&|g| g.imported.clone().unwrap_or_else(|| "fathom".to_owned()))
        {
            self.notes.push(format!(
                "recorded by {b} before, by {a} after: they see different calls"
            ));
        }
        let machines = |side: &[Profile]| -> BTreeSet<String> {
            side.iter()
                .filter(|p| p.gaps.imported.is_none())
                .map(|p| p.machine.clone())
                .collect()
        };
        let (b, a) = (machines(sides[0]), machines(sides[1]));
        if b != a && !b.is_empty() && !a.is_empty() {
            self.notes
                .push("recorded on different machines or kernels: times depend on both".to_owned());
        }
    }

    /// Why a metric cannot be compared.
    pub fn metric(&self, metric: Metric) -> Option<&str> {
        let why = match metric {
            Metric::Time => self.times.as_ref().or(self.counts.as_ref()),
            Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999 | Metric::Tail => {
                self.percentiles.as_ref()
            }
            Metric::AskedBytes => self.asked.as_ref().or(self.counts.as_ref()),
            Metric::Calls | Metric::Errors | Metric::Bytes => self.counts.as_ref(),
            Metric::FirstCall | Metric::LastCall | Metric::Findings | Metric::Longest => None,
        };
        why.map(String::as_str)
    }

    /// Why names of errors cannot be.
    pub fn error_names(&self) -> Option<&str> {
        self.error_names.as_deref().or(self.counts.as_deref())
    }

    /// Why findings cannot be.
    pub fn findings(&self) -> Option<&str> {
        self.findings.as_deref()
    }

    /// Why devices cannot be.
    pub fn devices(&self) -> Option<&str> {
        self.devices.as_deref()
    }

    /// Why a layer of table `slices` cannot be.
    pub fn layer(&self, layer: &str) -> Option<&str> {
        self.layers
            .iter()
            .find(|(name, _)| *name == layer)
            .map(|(_, why)| why.as_str())
    }

    /// Why a row says nothing that one side does not have.
    pub fn one_sided(&self) -> Option<&str> {
        self.one_sided.as_deref()
    }
}
