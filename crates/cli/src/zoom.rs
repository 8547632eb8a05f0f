//! `fathom zoom`: sums over any window of a session in any number of buckets.

use fathom_model::{escape, units};
use fathom_query::arrow::record_batch::RecordBatch;
use fathom_query::zoom::{By, Filter, Request, Zoom, of_hosts};
use fathom_query::{Limits, Rows};
use fathom_session::{Session, SessionSet, on_latest};

use crate::args::{ByArg, ZoomArgs};
use crate::exit::Failure;
use crate::{analysis, set};

/// Number of rows without a pyramid from which it pays to build one first.
const REBUILD_ROWS: u64 = 4_000_000;

/// Runs `zoom` and returns the exit status.
pub fn run(args: &ZoomArgs) -> Result<u8, Failure> {
    if SessionSet::is_set(&args.session) {
        return of_set(args);
    }
    let session = analysis::open(&args.session)?;
    let clock = session.meta().clock.clone();
    let window = analysis::window(args.from.as_deref(), args.until.as_deref(), &clock);
    let window = window.map_err(Failure::input)?;
    sums(session, args, window, |rows| match rows {
        Found::Sums(rows) => analysis::print(std::iter::once(rows), args.format, args.exact),
        Found::Calls(rows) => analysis::print(*rows, args.format, args.exact),
    })
}

/// The rows of each session of a set, with its host, on the clock of the first one and in one window.
fn of_set(args: &ZoomArgs) -> Result<u8, Failure> {
    let set = set::open(&args.session)?;
    let mut window = (None, None);
    let mut spans = Vec::new();
    for (n, (member, session)) in set.members().enumerate() {
        if n == 0 {
            let reference = &session.meta().clock;
            let of = analysis::window(args.from.as_deref(), args.until.as_deref(), reference);
            window = of.map_err(Failure::input)?;
        }
        let map = &member.clock.map;
        let span = open(&mut session.clone())?.span();
        // A nanosecond more on both sides, as times are rounded on their way to the reference and back.
        let bounds = |(first, last): (i64, i64)| {
            let (first, last) = (map.apply(first), map.apply(last));
            (first.saturating_sub(1), last.saturating_add(2))
        };
        spans.extend(span.map(bounds));
    }
    // Buckets are as wide as the window asks for: equal windows have equal buckets.
    let from = window.0.or(spans.iter().map(|span| span.0).min());
    let to = window.1.or(spans.iter().map(|span| span.1).max());
    let mut parts = Vec::new();
    for (member, session) in set.members() {
        let (host, clock) = (&member.host, &member.clock.map);
        let back = clock.inverse();
        let own = |at_ns: Option<i64>| at_ns.map(|at_ns| back.apply(at_ns));
        errln!("fathom: host {}:", escape::text(host));
        let rows = sums(session.clone(), args, (own(from), own(to)), |rows| {
            let rows = match rows {
                Found::Sums(rows) => Ok(vec![rows]),
                Found::Calls(rows) => rows.collect(),
            };
            rows.map_err(Failure::input)
        })?;
        parts.push((&**host, clock, rows));
    }
    let rows = of_hosts(&parts).map_err(Failure::input)?;
    analysis::print(std::iter::once(rows), args.format, args.exact)
}

/// The rows that `zoom` prints.
enum Found<'a> {
    Sums(RecordBatch),
    Calls(Box<Rows<'a>>),
}

/// Hands over the rows of a window of a session, and says what was read.
fn sums<T>(
    mut session: Session,
    args: &ZoomArgs,
    (from, to): (Option<i64>, Option<i64>),
    with: impl FnOnce(Found<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if args.rebuild {
        session.build_pyramids().map_err(Failure::input)?;
    }
    let mut zoom = open(&mut session)?;
    if let Some(problem) = zoom.problem() {
        errln!("fathom: {problem}");
    }
    if zoom.uncovered_rows() >= REBUILD_ROWS && !args.rebuild && !session.is_live() {
        errln!(
            "fathom: making the pyramids of {} rows, once",
            zoom.uncovered_rows()
        );
        match session.build_pyramids() {
            Ok(()) => zoom = open(&mut session)?,
            // On a read-only medium the sums come from the rows.
            Err(error) => errln!("fathom: {error}"),
        }
    }
    let start = session.meta().clock.start_monotonic_ns;
    let filter = Filter {
        syscall: args.syscall.clone().map(|name| vec![name]),
        class: args.class.clone().map(|name| vec![name]),
        pid: args.pid.map(|pid| vec![pid]),
        tid: args.tid.map(|tid| vec![tid]),
        file_id: args.file_id.map(|id| vec![id]),
        ..Filter::default()
    };
    if let Some(limit) = args.events {
        let window = from.unwrap_or(0)..to.unwrap_or(i64::MAX);
        let rows = zoom
            .events(window, &filter, limit)
            .map_err(Failure::input)?;
        return with(Found::Calls(Box::new(rows)));
    }
    let answer = zoom
        .query(&Request {
            from_ns: from,
            to_ns: to,
            pixels: args.pixels,
            by: by(args.by),
            filter,
            top: Some(args.top),
            latency: args.latency,
            busy: false,
            max_rows: None,
        })
        .map_err(Failure::input)?;
    if zoom.span().is_none() {
        errln!(
            "fathom: there is nothing to sum up: {}",
            without_rows(&session)
        );
        return with(Found::Sums(answer.rows));
    }
    errln!(
        "fathom: buckets of {}, from {} to {} of the recording{}; read {} blocks of the pyramid, \
         {} parts{}",
        ns(answer.bucket_ns),
        ns(answer.window_ns.start - start),
        ns(answer.window_ns.end - start),
        if answer.coarser {
            ", wider than requested"
        } else {
            ""
        },
        answer.blocks,
        answer.parts,
        match answer.fault_parts {
            0 => String::new(),
            n => format!(" and, as the pyramid has no page faults, {n} of table faults"),
        },
    );
    with(Found::Sums(answer.rows))
}

/// Why a session has no rows of calls.
fn without_rows(session: &Session) -> String {
    match session.meta().totals.counted {
        0 => "the session has no calls".to_owned(),
        counted => format!(
            "the session has no rows of calls; it counted {} calls per process, call, and file: fathom \
             report shows them",
            units::count(i64::try_from(counted).unwrap_or(i64::MAX))
        ),
    }
}

fn open(session: &mut Session) -> Result<Zoom, Failure> {
    on_latest(session, |session| Zoom::open(session, Limits::default())).map_err(Failure::input)
}

fn by(by: ByArg) -> By {
    match by {
        ByArg::None => By::Nothing,
        ByArg::Syscall => By::Syscall,
        ByArg::Class => By::Class,
        ByArg::Thread => By::Thread,
        ByArg::Process => By::Process,
        ByArg::File => By::File,
        ByArg::Layer => By::Layer,
        ByArg::Reason => By::Reason,
    }
}

/// A time in the unit that suits it, exact to the nanosecond.
fn ns(ns: i64) -> String {
    match ns.unsigned_abs() {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{} ms", ns as f64 / 1e6),
        _ => format!("{} s", ns as f64 / 1e9),
    }
}
