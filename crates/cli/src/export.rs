//! `fathom export`: a session in the format of another tool.

use std::fs::{self, File};
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use fathom_export::{Format, Outcome, Selection, export, parse_time};
use fathom_query::{Db, Limits};
use fathom_session::Session;

use crate::analyse;
use crate::args::ExportArgs;
use crate::exit::Failure;
use crate::progress::{Progress, Unit};

/// Runs `export` and returns the exit status.
pub fn run(args: &ExportArgs) -> Result<u8, Failure> {
    let mut session = analyse::open(&args.session)?;
    let db = analyse::database(&mut session, Limits::default())?;
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
        Some(path) => to_file(&db, &session, args.to, &selection, path)?,
        None => {
            let stdout = std::io::stdout();
            let terminal = stdout.is_terminal();
            if terminal && args.to.is_binary() {
                return Err(Failure::input(anyhow::anyhow!(
                    "--to {} is not for a terminal: name a file with -o",
                    args.to.name()
                )));
            }
            write(&db, &session, args.to, &selection, terminal, stdout).map_err(Failure::input)?
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
    terminal: bool,
    out: impl Write + Send,
) -> fathom_export::Result<Outcome> {
    // Where the output itself goes to a terminal a bar would be in its way.
    let bar = (!terminal).then(|| Progress::new("exporting", Unit::Rows));
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
        terminal,
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
    path: &Path,
) -> Result<Outcome, Failure> {
    let in_place = fs::metadata(path).is_ok_and(|info| !info.is_file());
    let target = if in_place {
        path.to_path_buf()
    } else {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.tmp", std::process::id()));
        PathBuf::from(name)
    };
    let failed = |what: &str, path: &Path| format!("cannot {what} {}", path.display());
    let file = if in_place {
        File::options().write(true).open(&target)
    } else {
        File::create(&target)
    };
    let file = file
        .with_context(|| failed("write", path))
        .map_err(Failure::input)?;
    let result = write(db, session, format, selection, false, file).map_err(Failure::input);
    if in_place {
        return result;
    }
    let result = result.and_then(|outcome| {
        fs::rename(&target, path)
            .with_context(|| failed("write", path))
            .map_err(Failure::input)?;
        Ok(outcome)
    });
    if result.is_err() {
        // The error that is told is the one before.
        let _ = fs::remove_file(&target);
    }
    result
}
