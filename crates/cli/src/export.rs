//! `fathom export`: a session in the format of another tool.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use anyhow::{Context, anyhow};
use fathom_export::{Format, Outcome, Selection, Text, export, parse_time};
use fathom_query::{Db, Limits};
use fathom_session::{NewFile, Session, is_ours};

use crate::analysis;
use crate::args::ExportArgs;
use crate::exit::Failure;
use crate::progress::{Bar, Unit};

/// Runs `export` and returns the exit status.
pub fn run(args: &ExportArgs) -> Result<u8, Failure> {
    let mut session = analysis::open(&args.session)?;
    let db = analysis::database(&mut session, Limits::default())?;
    let time = |text: &Option<String>| {
        text.as_deref()
            .map(|text| parse_time(text, &session.meta().clock))
            .transpose()
            .map_err(Failure::input)
    };
    let selection = Selection {
        from_ns: time(&args.from)?,
        until_ns: time(&args.until)?,
        condition: args.condition.clone(),
    };
    let outcome = match &args.output {
        Some(path) => {
            let text = Text {
                terminal: false,
                exact: args.exact,
            };
            to_file(&db, &session, args.format, &selection, text, path)?
        }
        None => {
            let stdout = std::io::stdout();
            let terminal = stdout.is_terminal();
            if terminal && args.format.is_binary() {
                return Err(Failure::input(anyhow::anyhow!(
                    "--format {} is not for a terminal: name a file with -o",
                    args.format.name()
                )));
            }
            let text = Text {
                terminal,
                exact: args.exact,
            };
            write(&db, &session, args.format, &selection, text, stdout).map_err(Failure::input)?
        }
    };
    for note in &outcome.notes {
        eprintln!("fathom: {note}");
    }
    Ok(0)
}

fn write(
    db: &Db,
    session: &Session,
    format: Format,
    selection: &Selection,
    text: Text,
    out: impl Write + Send,
) -> fathom_export::Result<Outcome> {
    // Where the output itself goes to a terminal a bar would be in its way.
    let bar = (!text.terminal).then(|| Bar::new("exporting", Unit::Rows));
    let mut progress = |done, total| {
        if let Some(bar) = &bar {
            bar.set(done, total);
        }
    };
    let mut out = BufWriter::with_capacity(1 << 18, out);
    export(
        db,
        session.meta(),
        format,
        selection,
        text,
        &mut out,
        &mut progress,
    )
}

/// Writes beside the file and puts that in its place when it is whole, so that
/// nobody takes a part of an export for the whole. A pipe or a device is written
/// as it is.
fn to_file(
    db: &Db,
    session: &Session,
    format: Format,
    selection: &Selection,
    text: Text,
    path: &Path,
) -> Result<Outcome, Failure> {
    let failed = || format!("cannot write {}", path.display());
    let input = |error: io::Error| Failure::input(anyhow::Error::new(error).context(failed()));
    if fs::metadata(path).is_ok_and(|info| !info.is_file() && !info.is_dir()) {
        trust(path).with_context(failed).map_err(Failure::input)?;
        let file = File::options().write(true).open(path).map_err(input)?;
        return write(db, session, format, selection, text, file).map_err(Failure::input);
    }
    let (new, file) = NewFile::begin(path).map_err(input)?;
    let outcome = write(db, session, format, selection, text, file).map_err(Failure::input)?;
    new.finish().map_err(input)?;
    Ok(outcome)
}

/// Whether a pipe or device is one that the user can mean: another user who has put a pipe, or a
/// link to one, where a file was to be would get the export.
fn trust(path: &Path) -> anyhow::Result<()> {
    let link = fs::symlink_metadata(path)?;
    let target = fs::metadata(path)?;
    let devices = target.file_type().is_char_device() || target.file_type().is_block_device();
    let owners = match devices {
        // Only root can make them.
        true => vec![link.uid()],
        false => vec![link.uid(), target.uid()],
    };
    match owners.into_iter().find(|uid| *uid != 0 && !is_ours(*uid)) {
        None => Ok(()),
        Some(uid) => Err(anyhow!(
            "it is no file, and belongs to user {uid}; remove it, or choose another name"
        )),
    }
}
