//! `fathom pull`: copies a session from another host.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow};
use fathom_model::{escape, units};
use fathom_probe::Signals;
use fathom_session::{FrameReader, Pass, Received, Receiver, TransferError};
use rustix::process::{Pid, Signal, kill_process};

use super::host;
use super::{Request, ask, lines};
use crate::args::{Host, PullArgs};
use crate::exit::Failure;

/// How often signals are looked at.
const TURN: Duration = Duration::from_millis(200);

/// Runs `pull` and returns the exit status.
pub fn run(args: &PullArgs) -> Result<u8, Failure> {
    let (host, dir) = host::split(&args.session).map_err(Failure::input)?;
    let to = match &args.output {
        Some(output) => output.clone(),
        None => PathBuf::from(dir)
            .file_name()
            .map(PathBuf::from)
            .ok_or_else(|| Failure::input(anyhow!("{dir} has no name: give one with -o")))?,
    };
    let mut child = host::start(&host, &args.ssh).map_err(Failure::input)?;
    // After the process has started, which would inherit that signals are blocked.
    let interrupted = interrupt(child.id()).map_err(Failure::input)?;
    let result = copy(&mut child, &host, dir, &to, args);
    // The helper ends when its standard input does.
    drop(child.stdin.take());
    let cut = match &result {
        Ok(_) => None,
        Err(_) => {
            // It may still have much to send.
            drop(child.stdout.take());
            host::because(&mut child)
        }
    };
    let interrupted = match interrupted.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal),
    };
    if let (Some(signal), Err(_)) = (interrupted, &result) {
        let error = anyhow!("{}: nothing was copied", args.session);
        return Err(Failure::with_status(128 + signal, error));
    }
    let (received, complete) = result
        .map_err(|e| match (&e, cut) {
            (TransferError::Cut | TransferError::Io(_), Some(why)) => anyhow!("{e}: {why}"),
            _ => e.into(),
        })
        .with_context(|| args.session.clone())
        .map_err(Failure::input)?;
    child.wait().map_err(Failure::input)?;
    if args.quiet {
        problems(&received).for_each(|problem| errln!("fathom: {problem}"));
    } else {
        errln!("fathom: {}", summary(&received));
    }
    match complete {
        Ok(()) => Ok(0),
        // The copy has been followed as long as it was wanted.
        Err(_) if interrupted.is_some() => Ok(0),
        Err(error) => Err(Failure::input(anyhow!(
            "{}: {error}; {} has what was copied until then",
            args.session,
            to.display()
        ))),
    }
}

/// Ends the connection at Ctrl-C, so that the copy is closed or removed. Returns the place of the
/// signal.
fn interrupt(connection: u32) -> std::io::Result<Arc<AtomicI32>> {
    let mut signals = Signals::block()?;
    let place = Arc::new(AtomicI32::new(0));
    let shared = place.clone();
    std::thread::spawn(move || {
        while signals.wait(TURN, None).is_ok() {
            let arrived = signals.take().unwrap_or_default();
            if let Some(signal) = arrived.iter().find(|signal| !signal.asks_to_save()) {
                shared.store(signal.number, Ordering::Relaxed);
                let pid = i32::try_from(connection).ok().and_then(Pid::from_raw);
                let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
                return;
            }
        }
    });
    Ok(place)
}

/// The copy, and whether it was followed to its end.
fn copy(
    child: &mut Child,
    host: &Host,
    dir: &str,
    to: &std::path::Path,
    args: &PullArgs,
) -> Result<(Received, Result<(), TransferError>), TransferError> {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let name = host.given().to_owned();
    let errors = err.map(|err| std::thread::spawn(move || lines::print(&name, err)));
    let result = (|| {
        let (Some(stdin), Some(out)) = (&mut child.stdin, out) else {
            return Err(TransferError::Cut);
        };
        let request = Request::Send {
            dir: dir.as_bytes().to_vec(),
            follow: args.follow,
        };
        // A connection that has ended is noticed when its answer is read.
        let _ = ask(stdin, &request);
        let frames = open(BufReader::with_capacity(1 << 16, out), host.given())?;
        let mut copy = Receiver::begin(frames, to, args.force, args.max_bytes)?;
        let mut pass = copy.pass();
        if args.follow && matches!(pass, Ok(Pass::Whole)) {
            copy.publish()?;
            if !args.quiet {
                errln!("fathom: {} is there and grows", to.display());
            }
        }
        let published = args.follow && pass.is_ok();
        while matches!(pass, Ok(Pass::Whole)) {
            pass = copy.pass();
        }
        match pass {
            Ok(_) => Ok((copy.finish()?, Ok(()))),
            Err(error) if published => Ok((copy.finish()?, Err(error))),
            Err(error) => Err(error),
        }
    })();
    if result.is_err() {
        drop(child.stdin.take());
    }
    if let (Some(errors), true) = (errors, matches!(&result, Err(TransferError::Cut))) {
        // They say more about it than the error.
        let _ = errors.join();
    }
    result
}

/// The stream of a helper; says when its version is another.
pub fn open<R: BufRead>(from: R, host: &str) -> Result<FrameReader<R>, TransferError> {
    let frames = FrameReader::begin(from)?;
    let (theirs, ours) = (frames.version(), env!("CARGO_PKG_VERSION"));
    if theirs != ours {
        errln!(
            "fathom: {}: fathom there has version {}, this is {ours}; their sessions are alike",
            escape::text(host),
            escape::text(theirs)
        );
    }
    Ok(frames)
}

/// A line about a copy.
pub fn summary(received: &Received) -> String {
    let count = |n: u64| units::count(i64::try_from(n).unwrap_or(i64::MAX));
    let session = &received.session;
    let totals = &session.meta().totals;
    let mut line = format!(
        "{}: {} calls, {}; {} in {} files, {}",
        session.dir().display(),
        count(totals.seen),
        totals.parts_text(),
        units::bytes(i64::try_from(received.bytes).unwrap_or(i64::MAX)),
        count(received.files),
        match session.is_damaged() {
            true => "copied with the damage that the session there has",
            false => "all as sent",
        }
    );
    if received.live {
        line.push_str("; it is being recorded: these are the calls that were stored so far");
    }
    for problem in problems(received) {
        line.push_str(&format!("\nfathom: {problem}"));
    }
    line
}

/// Missing or damaged data of a copy.
fn problems(received: &Received) -> impl Iterator<Item = String> {
    let session = &received.session;
    let named = move |problem: &String| format!("{}: {problem}", session.dir().display());
    session.problems().iter().map(named)
}
