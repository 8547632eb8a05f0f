//! A table with its pyramid: which parts a window is in, and which blocks answer for it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_model::set::ClockMap;
use fathom_pyramid::{Cover, Key, Plan, Pyramid, Source};
use fathom_session::Session;

use super::buckets::{Buckets, Numbers};
use super::rows;
use crate::QueryError;

/// Number of all texts that have no cell of their own in a bucket of a pyramid.
pub(super) const OTHERS: u32 = u32::MAX;

/// A part of a table.
pub(super) struct PartTimes {
    pub(super) path: PathBuf,
    /// Times of its earliest and latest row; `None` when it has none.
    span: Option<(i64, i64)>,
    pub(super) rows: u64,
    /// Groups of rows in it: times of the earliest and the latest, longest duration.
    pub(super) groups: Vec<rows::Group>,
}

impl PartTimes {
    /// The same with the time of its rows on another clock, and without its groups.
    pub(super) fn moved(&self, clock: &ClockMap) -> Self {
        let on_clock = |(first, last)| (clock.apply(first), clock.apply(last));
        Self {
            path: self.path.clone(),
            span: self.span.map(on_clock),
            rows: self.rows,
            groups: Vec::new(),
        }
    }
}

/// A state of a table and of its pyramid.
#[derive(Clone)]
pub(super) struct Summed {
    pyramid: Option<Arc<(Pyramid, Cover)>>,
    parts: Arc<Vec<Arc<PartTimes>>>,
    /// Parts whose groups were read for this state.
    pub(super) parts_read: usize,
    /// Times of the first and the last row.
    pub(super) span: Option<(i64, i64)>,
    /// Why there is no pyramid although there should be one.
    pub(super) problem: Option<String>,
}

/// The sources of sums for a window.
pub(super) enum Answers {
    /// These blocks, and the rows of parts that no segment has.
    Blocks(Plan),
    /// All rows in the window, which are few.
    Rows,
    /// Nothing with buckets as narrow as that: they must have this shift at least.
    Wider(u8),
}

impl Summed {
    /// The table as it is in `session` now. Of parts that are `known` nothing is read.
    pub(super) fn open(
        source: &'static Source,
        session: &Session,
        known: Option<&Self>,
    ) -> Result<Self, QueryError> {
        let (pyramid, problem) = match session.pyramid(source, known.and_then(Self::pyramid)) {
            Ok(pyramid) => (pyramid, None),
            Err(e) => (None, Some(e.to_string())),
        };
        let known = known.map(|known| known.parts.as_slice());
        let (parts, parts_read) = parts_of(source.table, session, known)?;
        let span = span_of(&parts);
        Ok(Self {
            pyramid: pyramid.map(Arc::new),
            parts: Arc::new(parts),
            parts_read,
            span,
            problem,
        })
    }

    /// The same on another clock, without the pyramid.
    pub(super) fn moved(&self, clock: &ClockMap) -> Self {
        let parts: Vec<_> = self
            .parts()
            .map(|part| Arc::new(part.moved(clock)))
            .collect();
        Self {
            pyramid: None,
            span: span_of(&parts),
            parts: Arc::new(parts),
            parts_read: 0,
            problem: None,
        }
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &PartTimes> {
        self.parts.iter().map(|part| &**part)
    }

    /// Where rows may be that begin from `begin` to before `end` and take longer than `longer_ns`.
    pub(super) fn long_rows(&self, begin: i64, end: i64, longer_ns: i64) -> Vec<PathBuf> {
        long_rows(self.parts(), begin, end, longer_ns)
    }

    /// Adds the pyramid's sums of a window to `to`, with the numbers of their texts. Texts that have
    /// no cell of their own have number [`OTHERS`]. `None` if the pyramid is damaged, which was not
    /// noticed until now.
    pub(super) fn add_texts(
        &self,
        plan: &Plan,
        window: (i64, i64),
        texts: &mut Numbers<Arc<str>>,
        to: &mut Buckets,
    ) -> Option<()> {
        let read = self.pyramid()?.read(plan, true, |cells| {
            let numbers: Vec<u32> = cells
                .keys()
                .iter()
                .map(|key| match key {
                    Key::Text(name) => texts.of(&**name, |name| Arc::from(name)),
                    _ => OTHERS,
                })
                .collect();
            for (time, key, sum, latency) in cells.in_window(window) {
                if let (Some(number), Some(latency)) = (numbers.get(key), latency) {
                    to.merge(time, *number, sum, latency);
                }
            }
        });
        read.ok()
    }

    /// Parts that no pyramid covers.
    pub(super) fn uncovered(&self) -> Box<dyn Iterator<Item = &PartTimes> + '_> {
        match self.pyramid.as_deref() {
            Some((_, cover)) => Box::new(
                cover
                    .uncovered
                    .iter()
                    .filter_map(|i| Some(&**self.parts.get(*i)?)),
            ),
            None => Box::new(self.parts()),
        }
    }

    pub(super) fn pyramid(&self) -> Option<&Pyramid> {
        self.pyramid.as_deref().map(|(pyramid, _)| pyramid)
    }

    /// The sources for a window of whole buckets of 2^`shift` ns, if at most `max_rows` rows may be
    /// read.
    pub(super) fn answers(
        &self,
        dimension: usize,
        window: (i64, i64),
        shift: u8,
        max_rows: u64,
    ) -> Answers {
        let Some((pyramid, cover)) = self.pyramid.as_deref() else {
            return Answers::Rows;
        };
        let plan = pyramid.plan(cover, dimension, window, shift);
        match plan.too_narrow {
            None => Answers::Blocks(plan),
            Some(_) if plan.rows + rows_in(self.uncovered(), window) <= max_rows => Answers::Rows,
            Some(wider) => Answers::Wider(wider.max(shift + 1)),
        }
    }
}

/// The parts of a table in the current `session`, and how many of them were examined. `known` parts
/// are not read again.
pub(super) fn parts_of(
    table: &'static str,
    session: &Session,
    known: Option<&[Arc<PartTimes>]>,
) -> Result<(Vec<Arc<PartTimes>>, usize), QueryError> {
    let known: HashMap<&Path, &Arc<PartTimes>> = known
        .unwrap_or_default()
        .iter()
        .map(|p| (p.path.as_path(), p))
        .collect();
    let infos = session.part_infos(table);
    let mut parts = Vec::with_capacity(infos.len());
    let mut parts_read = 0;
    for (info, path) in infos.iter().zip(session.parts(table)) {
        if let Some(part) = known.get(path.as_path()) {
            parts.push(Arc::clone(part));
            continue;
        }
        parts_read += 1;
        let groups = rows::groups(&path).map_err(|detail| QueryError::Table { table, detail })?;
        let first = groups.iter().map(|g| g.first_at_ns).min();
        parts.push(Arc::new(PartTimes {
            span: first.zip(groups.iter().map(|g| g.last_at_ns).max()),
            rows: info.rows,
            path,
            groups,
        }));
    }
    Ok((parts, parts_read))
}

/// Times of the first and the last row.
pub(super) fn span_of(parts: &[Arc<PartTimes>]) -> Option<(i64, i64)> {
    let spans = parts.iter().filter_map(|p| p.span);
    let first = spans.clone().map(|s| s.0).min();
    first.zip(spans.map(|s| s.1).max())
}

/// Those with rows in a window, perhaps.
pub(super) fn inside<'a>(
    parts: impl Iterator<Item = &'a PartTimes>,
    window: (i64, i64),
) -> impl Iterator<Item = &'a PartTimes> {
    parts.filter(move |p| p.span.is_some_and(|s| s.1 >= window.0 && s.0 < window.1))
}

/// Rows of the parts with rows in a window: there are no more in it.
pub(super) fn rows_in<'a>(parts: impl Iterator<Item = &'a PartTimes>, window: (i64, i64)) -> u64 {
    inside(parts, window).map(|p| p.rows).sum()
}

/// Where they are.
pub(super) fn paths<'a>(parts: impl Iterator<Item = &'a PartTimes>) -> Vec<PathBuf> {
    parts.map(|p| p.path.clone()).collect()
}
/// Parts where rows may be that begin from `begin` to before `end` and take longer than `longer_ns`.
pub(super) fn long_rows<'a>(
    parts: impl Iterator<Item = &'a PartTimes>,
    begin: i64,
    end: i64,
    longer_ns: i64,
) -> Vec<PathBuf> {
    let holds =
        |g: &rows::Group| g.first_at_ns < end && g.last_at_ns >= begin && g.longest_ns > longer_ns;
    paths(parts.filter(|p| p.groups.iter().any(holds)))
}
