//! `fathom zoom`: sums over any window of a session in any number of buckets.

use fathom_model::{escape, units};
use fathom_query::Limits;
use fathom_query::zoom::{
    Answer, By, Filter, HostZoom, Request, Zoom, events_of_hosts, query_hosts,
};
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
    set::no_members(&args.members)?;
    if args.per_host {
        return Err(Failure::input(anyhow::anyhow!(
            "--per-host is for a set of sessions: leave it out"
        )));
    }
    let mut session = analysis::open(&args.session)?;
    let clock = session.meta().clock.clone();
    let window = analysis::window(args.from.as_deref(), args.until.as_deref(), &clock);
    let window = window.map_err(Failure::input)?;
    let zoom = opened(&mut session, args)?;
    let tenants = args.tenants.tenants();
    set::warn_unknown(&[tenants.unknown(zoom.db()).map_err(Failure::input)?]);
    let filter = filter(args, &zoom)?;
    if let Some(limit) = args.events {
        let window = window.0.unwrap_or(0)..window.1.unwrap_or(i64::MAX);
        let rows = zoom.events(window, &filter, limit);
        return analysis::print(rows.map_err(Failure::input)?, args.format, args.exact);
    }
    let request = Request {
        filter,
        ..request(args, window)
    };
    let answer = zoom.query(&request).map_err(Failure::input)?;
    match zoom.span() {
        None => errln!(
            "fathom: there is nothing to sum up: {}",
            without_rows(&session)
        ),
        Some(_) => say(&answer, session.meta().clock.start_monotonic_ns),
    }
    analysis::print(std::iter::once(answer.rows), args.format, args.exact)
}

/// Sums of the sessions of a set, on the clock of the first one.
fn of_set(args: &ZoomArgs) -> Result<u8, Failure> {
    let set = set::open(&args.session)?;
    let reference = set
        .members()
        .next()
        .map(|(_, session)| &session.meta().clock);
    let reference = reference.cloned().unwrap_or_default();
    let window = analysis::window(args.from.as_deref(), args.until.as_deref(), &reference);
    let window = window.map_err(Failure::input)?;
    let tenants = args.tenants.tenants();
    let (mut hosts, mut unknown) = (Vec::new(), Vec::new());
    for (member, session) in set::members(&set, &args.members)? {
        let mut session = session.clone();
        let zoom = opened(&mut session, args)?;
        unknown.push(tenants.unknown(zoom.db()).map_err(Failure::input)?);
        if zoom.span().is_none() {
            let host = escape::text(&member.host);
            errln!(
                "fathom: host {host} has nothing to sum up: {}",
                without_rows(&session)
            );
        }
        hosts.push(HostZoom {
            host: &member.host,
            clock: &member.clock.map,
            filter: filter(args, &zoom)?,
            zoom,
        });
    }
    set::warn_unknown(&unknown);
    if let Some(limit) = args.events {
        let rows = events_of_hosts(&hosts, window, limit).map_err(Failure::input)?;
        return analysis::print(std::iter::once(rows), args.format, args.exact);
    }
    let answer = query_hosts(&hosts, &request(args, window), args.per_host);
    let answer = answer.map_err(Failure::input)?;
    say(&answer, reference.start_monotonic_ns);
    analysis::print(std::iter::once(answer.rows), args.format, args.exact)
}

/// Opens a session, and makes the pyramids that it lacks.
fn opened(session: &mut Session, args: &ZoomArgs) -> Result<Zoom, Failure> {
    if args.rebuild {
        session.build_pyramids().map_err(Failure::input)?;
    }
    let mut zoom = open(session)?;
    if let Some(problem) = zoom.problem() {
        errln!("fathom: {problem}");
    }
    if zoom.uncovered_rows() >= REBUILD_ROWS && !args.rebuild && !session.is_live() {
        errln!(
            "fathom: making the pyramids of {} rows, once",
            zoom.uncovered_rows()
        );
        match session.build_pyramids() {
            Ok(()) => zoom = open(session)?,
            // On a read-only medium the sums come from the rows.
            Err(error) => errln!("fathom: {error}"),
        }
    }
    Ok(zoom)
}

/// The calls that options mean, in a session.
fn filter(args: &ZoomArgs, zoom: &Zoom) -> Result<Filter, Failure> {
    let filter = Filter {
        syscall: args.syscall.clone().map(|name| vec![name]),
        class: args.class.clone().map(|name| vec![name]),
        pid: args.pid.map(|pid| vec![pid]),
        tid: args.tid.map(|tid| vec![tid]),
        file_id: args.file_id.map(|id| vec![id]),
        ..Filter::default()
    };
    let tenants = args.tenants.tenants();
    tenants.narrow(zoom.db(), filter).map_err(Failure::input)
}

/// The sums that options ask for, of all calls.
fn request(args: &ZoomArgs, (from_ns, to_ns): (Option<i64>, Option<i64>)) -> Request {
    Request {
        from_ns,
        to_ns,
        pixels: args.pixels,
        by: by(args.by),
        top: Some(args.top),
        latency: args.latency,
        ..Request::default()
    }
}

/// Reports the window of an answer, and what was read for it.
fn say(answer: &Answer, start_ns: i64) {
    errln!(
        "fathom: buckets of {}, from {} to {} of the recording{}; blocks of the pyramid \
         read: {}, parts: {}{}",
        ns(answer.bucket_ns),
        ns(answer.window_ns.start - start_ns),
        ns(answer.window_ns.end - start_ns),
        if answer.coarser {
            ", wider than requested"
        } else {
            ""
        },
        answer.blocks,
        answer.parts,
        match answer.fault_parts {
            0 => String::new(),
            n => format!(", parts of table faults, of which the pyramid has nothing: {n}"),
        },
    );
    if answer.rows.num_rows() == 0 {
        errln!("fathom: no call that these options choose is in that time");
    }
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
