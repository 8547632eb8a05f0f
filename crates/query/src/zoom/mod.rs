//! Any window of a session at any number of pixels.
//!
//! [`Zoom::query`] answers from the session's pyramid (crate `fathom_pyramid`) in
//! time that does not grow with the rows in the window, and from the rows where
//! the pyramid cannot: in windows so short that they are few, of parts that have
//! just been written, and for filters that combine what the pyramid sums
//! separately. [`Zoom::events`] gives the rows themselves.

mod answer;
mod buckets;
mod busy;
mod filter;
mod gather;
mod hosts;
mod layers;
mod rows;
mod summed;
mod tenants;
mod waits;

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use fathom_model::kind::Purpose;
use fathom_model::set::ClockMap;
use fathom_model::tables::FAULTS;
use fathom_pyramid::{Key, SLICES, SYSCALLS, WAITS};
use fathom_session::Session;

use crate::moved::Moved;
use crate::{Db, Limits, QueryError, RowGate};
use answer::Named;
pub use filter::Filter;
use gather::Gather;
pub use hosts::{HostZoom, events_of_hosts, query_hosts};
use summed::{Answers, PartTimes, Summed, inside, parts_of, paths, rows_in, span_of};
pub use tenants::{Owners, Tenant, Tenants};

/// Rows that are read at most, unless asked otherwise.
const MAX_ROWS: u64 = 1 << 19;

/// Rows that are read rather than to leave some keys' calls in a rest: a few milliseconds.
const FEW_ROWS: u64 = 1 << 15;
/// Keys of an answer, unless asked otherwise.
const TOP: usize = 20;
/// Most buckets of an answer.
const MAX_PIXELS: u32 = 1 << 16;

/// The key of page faults among calls, classes, and purposes.
pub const PAGE_FAULT: &str = "page fault";

/// By what an answer is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Not at all.
    #[default]
    Nothing,
    Syscall,
    Class,
    /// The effect of calls on stored data: [`fathom_model::kind::Purpose`].
    Purpose,
    Thread,
    Process,
    /// File. Rows always have the page faults on its mappings, as with [`Request::faults`].
    File,
    /// Layer. Rows concern its visits: `calls` is their number and `total_ns` the time in the layer
    /// itself. A call without visits below it is one visit of layer `syscall`. Errors and bytes of
    /// calls count with `syscall`.
    Layer,
    /// Reason for which threads waited, in calls and outside of them. Rows concern table `waits`: `calls` is
    /// the number of waits, and `total_ns` the time until the wake-ups. From then on threads waited
    /// for the CPU, which is time of reason `cpu`. `max_ns` and `latency` describe whole waits.
    Reason,
}

/// The request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Start of the window, CLOCK_MONOTONIC nanoseconds; `None` for the first call.
    pub from_ns: Option<i64>,
    /// Its end, not in it.
    pub to_ns: Option<i64>,
    /// Buckets at least; at most twice as many and one. 0 stands for 1.
    pub pixels: u32,
    /// By what to split.
    pub by: By,
    /// The filter.
    pub filter: Filter,
    /// Most keys, those with the most time in the window; the others share rows.
    /// `None` for 20.
    pub top: Option<usize>,
    /// Whether to add latency histograms.
    pub latency: bool,
    /// Whether to add `busy_ns`: the time that calls (by layer: visits) took within each bucket.
    /// The calls in progress then have rows in all buckets that they last through.
    pub busy: bool,
    /// Whether to add the page faults on mapped files, which are no calls: `faults` (their number)
    /// and `fault_ns` (the time that they took), and their time in `busy_ns`. By call, class, and
    /// purpose they have the key [`PAGE_FAULT`]. The pyramid does not hold them: they are summed up
    /// from the rows of table `faults`. By layer and reason this changes nothing.
    pub faults: bool,
    /// Rows that are read at most to have buckets as narrow as asked for where the
    /// pyramid's are wider; above that the answer's are wider. `None` for half
    /// a million, 0 for the pyramid alone.
    pub max_rows: Option<u64>,
}

/// Sums over a window.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Width of the buckets, nanoseconds: a power of two.
    pub bucket_ns: i64,
    /// The window as answered: from the beginning of a bucket to the end of one.
    pub window_ns: Range<i64>,
    /// Whether the buckets are wider than asked for: what would have had to be
    /// read is too much.
    pub coarser: bool,
    /// Blocks of the pyramid that were read.
    pub blocks: usize,
    /// Parts of the table whose rows were read.
    pub parts: usize,
    /// Parts of table `faults` whose rows were read.
    pub fault_parts: usize,
    /// Whether the rows of each key contain all its calls. Otherwise some are in the rest: a row of
    /// such a key is `at_least`; a missing row has no mark.
    pub exact: bool,
    /// One row per bucket and key with calls, ordered by key (most time first) and time: `ts_ns`
    /// (start of the bucket), the columns of the key, `rest` (whether it combines all other keys),
    /// `calls`, `errors`, `bytes`, `bytes_read`, `bytes_written` (null if the pyramid answered by
    /// thread or file, because it does not separate them), `total_ns`, `max_ns`, `faults` and
    /// `fault_ns` (by file, or if requested), `at_least` (some of the key's calls may be in the rest; by layer, `max_ns`
    /// may be higher), `latency` (list, entry b counts durations from 2^b to below 2^(b+1) ns; if
    /// requested), `busy_ns` (time within the bucket, whenever the calls started; if requested).
    /// If the window has more rows than `max_rows`, the time of calls shorter than a quarter of a
    /// bucket is in the bucket in which they start, which may then have up to a quarter too much.
    pub rows: RecordBatch,
}

/// A session opened for zooming.
pub struct Zoom {
    db: Db,
    calls: Summed,
    visits: Summed,
    waits: Summed,
    faults: Arc<Vec<Arc<PartTimes>>>,
    names: answer::Names,
}

/// The pyramids of a session, and its parts by time.
struct Sums {
    calls: Summed,
    visits: Summed,
    waits: Summed,
    faults: Vec<Arc<PartTimes>>,
}

impl Sums {
    fn open(session: &Session, known: Option<&Zoom>) -> Result<Self, QueryError> {
        let (faults, _) = parts_of(FAULTS.name, session, known.map(|k| k.faults.as_slice()))?;
        Ok(Self {
            calls: Summed::open(&SYSCALLS, session, known.map(|k| &k.calls))?,
            visits: Summed::open(&SLICES, session, known.map(|k| &k.visits))?,
            waits: Summed::open(&WAITS, session, known.map(|k| &k.waits))?,
            faults,
        })
    }
}

/// The data gathered for an answer.
struct Gathered<'a> {
    gather: Gather<'a>,
    /// The buckets' shift, and the window in whole buckets.
    shift: u8,
    window: (i64, i64),
    blocks: usize,
    parts: usize,
}

impl Zoom {
    /// Opens `session` in its current state; to see more of a session in progress, open it again.
    ///
    /// # Errors
    /// The errors of [`Db::open`]. A damaged pyramid is not an error: [`Zoom::problem`] reports it,
    /// and sums come from the rows.
    pub fn open(session: &Session, limits: Limits) -> Result<Self, QueryError> {
        Self::start(session, || Db::open(session, limits))
    }

    /// The same of a session whose rows were not compared with their checksums.
    ///
    /// # Errors
    /// The errors of [`Db::open_unchecked`].
    pub fn open_unchecked(
        session: &Session,
        limits: Limits,
        rows: RowGate,
    ) -> Result<Self, QueryError> {
        Self::start(session, || Db::open_unchecked(session, limits, rows))
    }

    /// The same recording later, still in progress: `before` is the session that this was opened
    /// with, and `session` is its [refreshed](Session::refresh) state. Reads only new parts. The
    /// previous connection stays usable; its tables also have the new rows.
    ///
    /// # Errors
    /// The errors of [`Zoom::open`]: open it again then.
    pub fn follow(&self, before: &Session, session: &Session) -> Result<Self, QueryError> {
        let db = self.db.follow(before, session)?;
        Ok(Self::of(db, Sums::open(session, Some(self))?))
    }

    /// The pyramids are read while the database starts: both read all footers of a session.
    fn start(
        session: &Session,
        open: impl FnOnce() -> Result<Db, QueryError>,
    ) -> Result<Self, QueryError> {
        std::thread::scope(|scope| {
            let sums = scope.spawn(|| Sums::open(session, None));
            let db = open();
            let sums = sums.join().unwrap_or_else(|panic| resume_unwind(panic));
            Ok(Self::of(db?, sums?))
        })
    }

    fn of(db: Db, sums: Sums) -> Self {
        Self {
            db,
            calls: sums.calls,
            visits: sums.visits,
            waits: sums.waits,
            faults: Arc::new(sums.faults),
            names: answer::Names::default(),
        }
    }

    /// The same on another connection, for a query at the same time.
    ///
    /// # Errors
    /// The errors of [`Db::try_clone`].
    pub fn try_clone(&self) -> Result<Self, QueryError> {
        Ok(Self {
            db: self.db.try_clone()?,
            calls: self.calls.clone(),
            visits: self.visits.clone(),
            waits: self.waits.clone(),
            faults: Arc::clone(&self.faults),
            names: self.names.clone(),
        })
    }

    /// Times of the first and the last call or page fault on a mapped file, CLOCK_MONOTONIC
    /// nanoseconds; `None` without any.
    pub fn span(&self) -> Option<(i64, i64)> {
        match (self.calls.span, span_of(&self.faults)) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        }
    }

    /// Parts of tables with a pyramid that had to be looked at for this state: what opening or
    /// following cost.
    pub fn parts_read(&self) -> usize {
        self.calls.parts_read + self.visits.parts_read + self.waits.parts_read
    }

    /// Why there is no pyramid although there should be one.
    pub fn problem(&self) -> Option<&str> {
        let problems = self.calls.problem.as_deref();
        let problems = problems.or(self.visits.problem.as_deref());
        problems.or(self.waits.problem.as_deref())
    }

    /// Rows that are in no pyramid: they are read for every window that they
    /// are in.
    pub fn uncovered_rows(&self) -> u64 {
        let of = |table: &Summed| table.uncovered().map(|part| part.rows).sum::<u64>();
        of(&self.calls) + of(&self.visits) + of(&self.waits)
    }

    /// The session's tables.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Sums over a window.
    ///
    /// # Errors
    /// The errors of [`Db::query`]; [`QueryError::Table`] if a part was merged into another since:
    /// open the session again.
    pub fn query(&self, request: &Request) -> Result<Answer, QueryError> {
        let (window, asked) = self.buckets(request);
        let (gathered, fault_parts) = self.gather_all(request, window, asked)?;
        let (from, to) = gathered.window;
        Ok(Answer {
            bucket_ns: 1 << gathered.shift,
            window_ns: from..to,
            coarser: gathered.shift > asked,
            blocks: gathered.blocks,
            parts: gathered.parts,
            fault_parts,
            exact: !gathered.gather.has_rests(),
            rows: answer::batch(
                &[Named::of(self)],
                None,
                request,
                gathered.gather,
                gathered.shift,
                from,
            )?,
        })
    }

    /// Sums of calls, visits, or waits in buckets of 2^`asked` ns, or wider ones, with page faults; and how
    /// many parts of page faults were read.
    fn gather_all<'a>(
        &self,
        request: &'a Request,
        window: (i64, i64),
        asked: u8,
    ) -> Result<(Gathered<'a>, usize), QueryError> {
        let mut gathered = match request.by {
            By::Layer => layers::gather(self, request, window, asked)?,
            By::Reason => waits::gather(self, request, window, asked)?,
            _ => self.gather(request, window, asked)?,
        };
        if request.busy && !matches!(request.by, By::Layer | By::Reason) {
            busy::spread_calls(self, request, &mut gathered)?;
        }
        let fault_parts = match has_faults(request) {
            true => self.add_faults(request, &mut gathered)?,
            false => 0,
        };
        Ok((gathered, fault_parts))
    }

    /// Adds the page faults in the window; returns how many parts were read.
    fn add_faults(
        &self,
        request: &Request,
        gathered: &mut Gathered<'_>,
    ) -> Result<usize, QueryError> {
        let window = gathered.window;
        let parts = paths(inside(self.faults.iter().map(|part| &**part), window));
        let Some(condition) = request.filter.faults_sql() else {
            return Ok(0);
        };
        let gather = &mut gathered.gather;
        gather.start(window.0, gathered.shift);
        if !parts.is_empty() {
            let mut add = |time, key: &Key, sums| gather.add_faults(time, key, sums);
            let (by, shift) = (request.by, gathered.shift);
            rows::faults(&self.db, &parts, window, (by, shift), &condition, &mut add)?;
        }
        if request.busy && request.faults {
            busy::spread_faults(self, request, &condition, gathered)?;
        }
        Ok(parts.len())
    }

    /// Sums of calls in buckets of 2^`asked` ns, or wider ones.
    fn gather<'a>(
        &self,
        request: &'a Request,
        window: (i64, i64),
        asked: u8,
    ) -> Result<Gathered<'a>, QueryError> {
        let mut shift = asked;
        let mut gather = Gather::new(request);
        let max_rows = request.max_rows.unwrap_or(MAX_ROWS);
        let mut blocks = 0;
        let mut parts = None;
        if let (Some(pyramid), Some(dimension)) = (self.calls.pyramid(), gather::dimension(request))
        {
            // Wider buckets take in a little more at the borders.
            let plan = loop {
                match self
                    .calls
                    .answers(dimension, align(window, shift), shift, max_rows)
                {
                    Answers::Blocks(plan) => break Some(plan),
                    Answers::Rows => break None,
                    Answers::Wider(wider) => shift = wider,
                }
            };
            if let Some(plan) = plan {
                let aligned = align(window, shift);
                gather.start(aligned.0, shift);
                let read = pyramid.read(&plan, request.latency, |cells| {
                    gather.add_block(cells, aligned);
                });
                let few = max_rows.min(FEW_ROWS);
                let all_soon_read = || rows_in(self.calls.parts(), align(window, asked)) <= few;
                // Damaged, which was not noticed until now; or what is asked for may
                // be in a rest. The rows have it all.
                if read.is_err() || gather.misses_some() || gather.has_rests() && all_soon_read() {
                    shift = asked;
                    gather = Gather::new(request);
                } else {
                    blocks = plan.blocks();
                    parts = Some(paths(inside(self.calls.uncovered(), aligned)));
                }
            }
        }
        let window = align(window, shift);
        let parts = parts.unwrap_or_else(|| paths(inside(self.calls.parts(), window)));
        gather.start(window.0, shift);
        if !parts.is_empty() {
            rows::sums(
                &self.db,
                &parts,
                window,
                shift,
                request,
                |time, key, sum, latency| {
                    gather.add(time, key, sum, latency);
                },
            )?;
        }
        Ok(Gathered {
            gather,
            shift,
            window,
            blocks,
            parts: parts.len(),
        })
    }

    /// Rows of table `syscalls` from `window` on, ordered by time, at most `limit`. Reads only
    /// parts and row groups that overlap the window.
    ///
    /// # Errors
    /// The errors of [`Zoom::query`].
    pub fn events(
        &self,
        window_ns: Range<i64>,
        filter: &Filter,
        limit: usize,
    ) -> Result<crate::Rows<'_>, QueryError> {
        let window = (window_ns.start, window_ns.end);
        let paths = paths(inside(self.calls.parts(), window));
        self.db
            .run(&rows::events(&self.db, &paths, window, filter, limit)?)
    }

    /// The source after FROM for the calls that started in a window: the parts of table `syscalls`
    /// that contain some of them, and therefore other calls, too.
    ///
    /// # Errors
    /// When the path of a part cannot be given to the database.
    pub fn calls_in(&self, window_ns: Range<i64>) -> Result<String, QueryError> {
        let window = (window_ns.start, window_ns.end);
        let paths = paths(inside(self.calls.parts(), window));
        match paths.is_empty() {
            true => Ok("(SELECT * FROM syscalls WHERE false)".to_string()),
            false => rows::source(&self.db, &paths),
        }
    }

    /// The same for the calls that began in a window and took longer than `least_ns`; `None`
    /// when there is none.
    ///
    /// # Errors
    /// When the path of a part cannot be given to the database.
    pub fn long_calls_in(
        &self,
        window_ns: Range<i64>,
        least_ns: i64,
    ) -> Result<Option<String>, QueryError> {
        let paths = self
            .calls
            .long_rows(window_ns.start, window_ns.end, least_ns);
        match paths.is_empty() {
            true => Ok(None),
            false => rows::source(&self.db, &paths).map(Some),
        }
    }

    /// Rows of the parts that hold calls that began in a window: there are no more
    /// in it.
    pub fn rows_near(&self, window_ns: Range<i64>) -> u64 {
        rows_in(self.calls.parts(), (window_ns.start, window_ns.end))
    }

    /// The source after FROM for the waits that began in a window and took longer than `least_ns`,
    /// and other waits; `None` when there is none. Waits without an end took 0.
    ///
    /// # Errors
    /// When the path of a part cannot be given to the database.
    pub fn waits_in(
        &self,
        window_ns: Range<i64>,
        least_ns: Option<i64>,
    ) -> Result<Option<String>, QueryError> {
        let window = (window_ns.start, window_ns.end);
        let paths = match least_ns {
            Some(least) => self.waits.long_rows(window.0, window.1, least),
            None => paths(inside(self.waits.parts(), window)),
        };
        if paths.is_empty() {
            return Ok(None);
        }
        let rows = crate::tables::rows(&fathom_model::tables::WAITS, self.db.place(), &paths)?;
        Ok(Some(format!("({rows})")))
    }

    /// Whether a pyramid may answer a request.
    fn has_pyramid_for(&self, request: &Request) -> bool {
        let filtered = request.filter != Filter::default();
        match request.by {
            By::Layer => !filtered && self.visits.pyramid().is_some(),
            By::Reason => !filtered && self.waits.pyramid().is_some(),
            _ => gather::dimension(request).is_some() && self.calls.pyramid().is_some(),
        }
    }

    /// The same session with the times of all rows on another clock, or of the rows in some cells of
    /// 2^shift ns; without pyramids.
    fn moved(
        &self,
        clock: &ClockMap,
        cells: Option<(u8, BTreeSet<i64>)>,
    ) -> Result<Self, QueryError> {
        let moved = Moved {
            clock: clock.clone(),
            cells,
        };
        let faults = self.faults.iter().map(|part| Arc::new(part.moved(clock)));
        Ok(Self {
            db: self.db.moved_to(moved)?,
            calls: self.calls.moved(clock),
            visits: self.visits.moved(clock),
            waits: self.waits.moved(clock),
            faults: Arc::new(faults.collect()),
            names: self.names.clone(),
        })
    }

    /// The window and the shift of its buckets.
    fn buckets(&self, request: &Request) -> ((i64, i64), u8) {
        buckets_of(self.span(), request)
    }
}

/// The window of calls that span `span`, and the shift of its buckets.
fn buckets_of(span: Option<(i64, i64)>, request: &Request) -> ((i64, i64), u8) {
    let (first, last) = span.unwrap_or((0, 0));
    // Where buckets would begin and end must be numbers.
    let limit = i64::MAX >> 2;
    let from = request.from_ns.unwrap_or(first).clamp(0, limit);
    let to = request.to_ns.unwrap_or(last.saturating_add(1));
    let to = to.clamp(from + 1, limit + 1);
    let pixels = i64::from(request.pixels.clamp(1, MAX_PIXELS));
    let width = ((to - from) / pixels).max(1) as u64;
    ((from, to), width.ilog2() as u8)
}

/// Whether rows have page faults.
fn has_faults(request: &Request) -> bool {
    request.by == By::File || request.faults && !matches!(request.by, By::Layer | By::Reason)
}

/// The window made of whole buckets.
fn align((from, to): (i64, i64), shift: u8) -> (i64, i64) {
    let up = ((to - 1) >> shift) + 1;
    (from >> shift << shift, up << shift)
}

/// The name of a call's purpose as a key.
fn purpose_key(syscall: &Key) -> Key {
    let Key::Text(name) = syscall else {
        return syscall.clone();
    };
    if &**name == PAGE_FAULT {
        return syscall.clone();
    }
    let purpose = fathom_model::syscalls::SYSCALLS
        .iter()
        .find(|s| s.name == &**name)
        .map_or(Purpose::Other, |s| s.kind.purpose());
    Key::Text(Arc::from(purpose.name()))
}

/// The name of a class as a key.
fn class_key(syscall: &Key) -> Key {
    let Key::Text(name) = syscall else {
        return syscall.clone();
    };
    if &**name == PAGE_FAULT {
        return syscall.clone();
    }
    let class = fathom_model::syscalls::SYSCALLS
        .iter()
        .find(|s| s.name == &**name)
        .map_or("unknown", |s| s.class.name());
    Key::Text(Arc::from(class))
}
