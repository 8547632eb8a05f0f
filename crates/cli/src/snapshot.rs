//! `fathom snapshot`: makes a recorder save a copy of its session.

use crate::args::SnapshotArgs;
use crate::exit::Failure;

/// Runs `snapshot` and returns the exit status.
pub fn run(args: &SnapshotArgs) -> Result<u8, Failure> {
    let saved = fathom_recorder::snapshot(&args.session, args.output.as_deref());
    println!("{}", saved.map_err(Failure::input)?.display());
    Ok(0)
}
