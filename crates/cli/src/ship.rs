//! `fathom ship`: sessions to an object store.

use anyhow::anyhow;
use fathom_model::units;
use fathom_ship::{Destination, Redaction, Shipment, Shipped};
use rustix::fs::Mode;

use crate::args::ShipArgs;
use crate::exit::Failure;
use crate::progress::{Bar, Unit};
use crate::redact;

/// Runs `ship` and returns the exit status.
pub fn run(args: &ShipArgs) -> Result<u8, Failure> {
    let redaction = redaction(args)?;
    // Files in a directory are for their owner alone, like a session.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let destination = Destination::open(&args.to, args.retry_for).map_err(Failure::input)?;
    let mut failed = None;
    for session in &args.sessions {
        let shipment = Shipment {
            session,
            redaction: redaction.as_ref(),
            keep_secrets: args.keep_secrets,
            findings: !args.no_findings,
            force: args.force,
        };
        let result = {
            let bar = Bar::new("shipping", Unit::Bytes);
            shipment.ship(&destination, &mut |done, total| bar.set(done, total))
        };
        match result {
            Ok(_) if args.quiet => {}
            Ok(shipped) => errln!(
                "fathom: {}: {}",
                session.display(),
                summary(&shipped, destination.given())
            ),
            // The next session would wait for the same store.
            Err(error) if error.is_of_store() => return Err(Failure::input(error)),
            Err(error) => {
                let error = Failure::input(error);
                let last = failed.replace(error);
                if let Some(error) = last {
                    errln!("fathom: {error}");
                }
            }
        }
    }
    failed.map_or(Ok(0), Err)
}

fn redaction(args: &ShipArgs) -> Result<Option<Redaction>, Failure> {
    let options = &args.redact;
    if !options.redact {
        return Ok(None);
    }
    if options.key.is_none() {
        return Err(Failure::input(anyhow!(
            "ship --redact needs --key FILE: with a random key the hashes of two sessions could not be \
             compared, and no attempt could be continued; make one with `head -c 32 /dev/urandom > FILE`"
        )));
    }
    let (rules, key) = redact::chosen(options.rules.as_deref(), options.key.as_deref())?;
    Ok(Some(Redaction { rules, key }))
}

fn summary(shipped: &Shipped, to: &str) -> String {
    let count = |n: u64| units::count(i64::try_from(n).unwrap_or(i64::MAX));
    let bytes = |n: u64| units::bytes(i64::try_from(n).unwrap_or(i64::MAX));
    let mut text = format!(
        "{} objects, {} in {to}; ",
        count(shipped.objects),
        bytes(shipped.bytes)
    );
    match shipped.uploaded_objects {
        0 => text.push_str("all were there"),
        n if n == shipped.objects => text.push_str("all uploaded"),
        n => text.push_str(&format!(
            "{} uploaded ({}), the others were there",
            count(n),
            bytes(shipped.uploaded_bytes)
        )),
    }
    if shipped.removed_objects > 0 {
        let removed = count(shipped.removed_objects);
        text.push_str(&format!("; {removed} of another state removed"));
    }
    text
}
