//! `fathom import`: logs of other tracers become sessions, spans of applications become a table of
//! one.

use std::path::{Path, PathBuf};

use fathom_model::units::{self, duration};
use fathom_session::WriterOptions;

use crate::args::ImportArgs;
use crate::exit::Failure;
use crate::progress::{Bar, Unit};

/// Runs `import` and returns the exit status.
pub fn run(args: &ImportArgs) -> Result<u8, Failure> {
    if let Some(session) = &args.into {
        #[cfg(feature = "analysis")]
        if let Some(name) = &args.table {
            return crate::own_table::import(&args.files, session, name, args.force);
        }
        if args.force {
            return Err(Failure::input(anyhow::anyhow!(
                "--force replaces a session, or your table with --table; spans of one id are \
                 always replaced: leave it out"
            )));
        }
        return spans(&args.files, session);
    }
    let output = match &args.output {
        Some(output) => output.clone(),
        None => {
            let mut name = args
                .files
                .first()
                .cloned()
                .unwrap_or_default()
                .into_os_string();
            name.push(".fathom");
            PathBuf::from(name)
        }
    };
    let options = WriterOptions {
        force: args.force,
        share: args.share.share(),
        ..WriterOptions::default()
    };
    let outcome = {
        let bar = Bar::new("importing", Unit::Bytes);
        let mut progress = |done, total| bar.set(done, total);
        fathom_import::import(&args.files, args.format, &output, options, &mut progress)
            .map_err(Failure::input)?
    };
    let source = &outcome.source;
    errln!(
        "fathom: {} calls from {} lines of {} in {}; {} other calls are not storage calls",
        outcome.calls,
        source.lines,
        outcome.format.name(),
        output.display(),
        source.other_calls
    );
    if source.bad_lines > 0 {
        errln!(
            "fathom: {} lines could not be parsed and were skipped; the first:",
            source.bad_lines
        );
        for line in &outcome.bad_examples {
            errln!("    {line}");
        }
    }
    for missing in &source.not_observable {
        errln!("fathom: not in the log: {missing}");
    }
    Ok(0)
}

/// Adds spans to a session.
fn spans(files: &[PathBuf], session: &Path) -> Result<u8, Failure> {
    let outcome = {
        let bar = Bar::new("importing", Unit::Bytes);
        let mut progress = |done, total| bar.set(done, total);
        fathom_import::import_spans(files, session, &mut progress).map_err(Failure::input)?
    };
    let counts = &outcome.counts;
    errln!(
        "fathom: {} spans of OTLP added to {}, which has {} now",
        count(counts.stored),
        session.display(),
        count(outcome.rows)
    );
    let notes = [
        (
            counts.outside,
            "spans are outside of the time of the recording, and were left out",
        ),
        (
            counts.invalid,
            "spans lack valid ids or times, and were left out",
        ),
        (
            counts.other_threads,
            "spans name a thread that their process did not have all the time in the recording: \
             their tid is null",
        ),
        (
            counts.cut,
            "spans have longer texts or more attributes than are kept",
        ),
        (
            outcome.bad_lines,
            "lines could not be parsed, and were left out; the first:",
        ),
    ];
    for (number, note) in notes.iter().filter(|(number, _)| *number > 0) {
        errln!("fathom: {} {note}", count(*number));
    }
    for line in &outcome.bad_examples {
        errln!("    {line}");
    }
    if let Some(ns) = outcome.clock_set_ns {
        errln!(
            "fathom: the wall clock was set by {} during the recording: spans may be misplaced by \
             so much",
            duration(i64::try_from(ns).unwrap_or(i64::MAX))
        );
    }
    Ok(0)
}

/// A count of things, with separators.
fn count(n: u64) -> String {
    units::count(i64::try_from(n).unwrap_or(i64::MAX))
}
