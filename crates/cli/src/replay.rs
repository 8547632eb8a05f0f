//! `fathom replay`: a raw capture becomes a session.

use fathom_session::WriterOptions;

use crate::args::ReplayArgs;
use crate::exit::Failure;
use crate::record::Terminal;

/// Runs `replay` and returns the exit status.
pub fn run(args: &ReplayArgs) -> Result<u8, Failure> {
    let options = WriterOptions {
        force: args.force,
        share: args.share.share(),
        ..WriterOptions::default()
    };
    let mut terminal = Terminal::new(true);
    let totals = fathom_recorder::replay(&args.capture, &args.output, options, &mut terminal)
        .map_err(Failure::input)?;
    errln!(
        "fathom: {} calls, {} lost, in {}",
        totals.stored,
        totals.lost,
        args.output.display()
    );
    Ok(0)
}
