//! `fathom import`: logs of other tracers become sessions.

use std::path::PathBuf;

use fathom_session::WriterOptions;

use crate::args::ImportArgs;
use crate::exit::Failure;
use crate::progress::{Bar, Unit};

/// Runs `import` and returns the exit status.
pub fn run(args: &ImportArgs) -> Result<u8, Failure> {
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
    eprintln!(
        "fathom: {} calls from {} lines of {} in {}; {} other calls are not storage calls",
        outcome.calls,
        source.lines,
        outcome.format.name(),
        output.display(),
        source.other_calls
    );
    if source.bad_lines > 0 {
        eprintln!(
            "fathom: {} lines could not be parsed and were skipped; the first:",
            source.bad_lines
        );
        for line in &outcome.bad_examples {
            eprintln!("    {line}");
        }
    }
    for missing in &source.not_observable {
        eprintln!("fathom: not in the log: {missing}");
    }
    Ok(0)
}
