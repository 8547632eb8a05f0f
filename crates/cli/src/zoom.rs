//! `fathom zoom`: sums over any window of a session in any number of buckets.

use fathom_query::Limits;
use fathom_query::zoom::{By, Filter, Request, Zoom};
use fathom_session::{Session, on_latest};

use crate::analysis;
use crate::args::{ByArg, ZoomArgs};
use crate::exit::Failure;

/// Number of rows without a pyramid from which it pays to build one first.
const REBUILD_ROWS: u64 = 4_000_000;

/// Runs `zoom` and returns the exit status.
pub fn run(args: &ZoomArgs) -> Result<u8, Failure> {
    let mut session = analysis::open(&args.session)?;
    if args.rebuild {
        session.build_pyramids().map_err(Failure::input)?;
    }
    let mut zoom = open(&mut session)?;
    if let Some(problem) = zoom.problem() {
        eprintln!("fathom: {problem}");
    }
    if zoom.uncovered_rows() >= REBUILD_ROWS && !args.rebuild && !session.is_live() {
        eprintln!(
            "fathom: making the pyramids of {} rows, once",
            zoom.uncovered_rows()
        );
        match session.build_pyramids() {
            Ok(()) => zoom = open(&mut session)?,
            // On a read-only medium the sums come from the rows.
            Err(error) => eprintln!("fathom: {error}"),
        }
    }
    let clock = session.meta().clock.clone();
    let start = clock.start_monotonic_ns;
    let window = analysis::window(args.from.as_deref(), args.until.as_deref(), &clock);
    let (from, to) = window.map_err(Failure::input)?;
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
        return analysis::print(rows, args.format, args.exact);
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
    eprintln!(
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
    analysis::print(std::iter::once(answer.rows), args.format, args.exact)
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
