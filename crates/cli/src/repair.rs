//! `fathom repair`.

use fathom_session::repair;

use crate::args::RepairArgs;
use crate::exit::Failure;

/// Runs `repair` and returns the exit status.
pub fn run(args: &RepairArgs) -> Result<u8, Failure> {
    let done = repair(&args.session, !args.dry_run).map_err(Failure::input)?;
    for found in &done.found {
        println!("{found}");
    }
    for lost in &done.lost {
        println!("lost: {lost}");
    }
    match (done.found.is_empty(), args.dry_run) {
        (true, _) => println!("nothing to repair"),
        (false, true) => println!("nothing was changed; run without --dry-run to repair"),
        (false, false) => println!("repaired"),
    }
    Ok(u8::from(args.dry_run && !done.found.is_empty()))
}
