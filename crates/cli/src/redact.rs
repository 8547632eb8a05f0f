//! `fathom redact`, and `--redact` of the commands that write what others read.

use std::path::Path;

#[cfg(feature = "analysis")]
use fathom_redact::Scratch;
use fathom_redact::{Key, RedactError, Rules, redact};
use fathom_session::WriterOptions;

use crate::args::RedactArgs;
#[cfg(feature = "analysis")]
use crate::args::RedactOptions;
use crate::exit::Failure;
use crate::progress::{Bar, Unit};

/// Runs `redact` and returns the exit status.
pub fn run(args: &RedactArgs) -> Result<u8, Failure> {
    let options = WriterOptions {
        force: args.force,
        share: args.share.share(),
        ..WriterOptions::default()
    };
    let (rules, key) = chosen(args.rules.as_deref(), args.key.as_deref())?;
    {
        let bar = Bar::new("redacting", Unit::Rows);
        let mut progress = |done, total| bar.set(done, total);
        redact(
            &args.session,
            &args.output,
            &rules,
            &key,
            options,
            &mut progress,
        )
        .map_err(Failure::input)?;
    }
    eprintln!(
        "fathom: redacted copy in {}; look at it before you give it away (fathom redact --help)",
        args.output.display()
    );
    Ok(0)
}

/// The rules and the key of hashes that options choose.
pub fn chosen(rules: Option<&Path>, key: Option<&Path>) -> Result<(Rules, Key), Failure> {
    let chosen = || {
        let rules = rules.map(Rules::read).transpose()?.unwrap_or_default();
        let key = match key {
            Some(path) => Key::read(path)?,
            None => Key::random()?,
        };
        Ok::<_, RedactError>((rules, key))
    };
    chosen().map_err(Failure::input)
}

/// With `--redact` a redacted copy of the session, which goes when it is dropped.
#[cfg(feature = "analysis")]
pub fn temporary(session: &Path, options: &RedactOptions) -> Result<Option<Scratch>, Failure> {
    if !options.redact {
        return Ok(None);
    }
    let (rules, key) = chosen(options.rules.as_deref(), options.key.as_deref())?;
    let bar = Bar::new("redacting", Unit::Rows);
    let mut progress = |done, total| bar.set(done, total);
    let parent = std::env::temp_dir();
    let defaults = WriterOptions::default();
    let made = Scratch::make(session, &parent, &rules, &key, defaults, &mut progress);
    made.map(Some).map_err(Failure::input)
}
