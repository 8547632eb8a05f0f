//! `fathom export`: a session in the format of another tool.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use anyhow::{Context, anyhow};
use fathom_export::{Member, Outcome, Selection, Text, TraceFiles, export, export_ctf, export_set};
use fathom_query::{Db, Limits};
use fathom_redact::Scratch;
use fathom_session::{NewDir, NewFile, Session, SessionSet, is_ours};

use crate::analysis;
use crate::args::ExportArgs;
use crate::exit::Failure;
use crate::progress::{Bar, Unit};
use crate::{redact, set};

/// Runs `export` and returns the exit status.
pub fn run(args: &ExportArgs) -> Result<u8, Failure> {
    let redacted = redact::temporary(&args.session, &args.redact)?;
    let session = redacted.as_ref().map_or(&*args.session, Scratch::session);
    if SessionSet::is_set(session) {
        return of_set(args, session);
    }
    if args.format.is_page() {
        return page(args, session);
    }
    let mut session = analysis::open(session)?;
    let findings = match args.format.has_findings() {
        true => {
            let found = analysis::findings(&mut session, &args.extensions.load()?)?;
            Some(fathom_diagnose::finding_rows(&found))
        }
        false => None,
    };
    let db = analysis::database(&mut session, Limits::default())?;
    if let Some(findings) = findings {
        db.set_findings(&[findings]).map_err(Failure::input)?;
    }
    let selection = selection(args, &session)?;
    if args.format.is_directory() {
        let path = args.output.as_deref().ok_or_else(|| {
            Failure::input(anyhow!(
                "--format {} is a directory of files: name the directory to make with -o",
                args.format.name()
            ))
        })?;
        note(&to_directory(&db, &session, &selection, path)?);
        return Ok(0);
    }
    output(args, &|out, text, progress| {
        export(
            &db,
            session.meta(),
            args.format,
            &selection,
            text,
            out,
            progress,
        )
    })
}

/// Exports the sessions of a set.
fn of_set(args: &ExportArgs, path: &Path) -> Result<u8, Failure> {
    args.format.check_set().map_err(Failure::input)?;
    let mut opened = set::open(path)?;
    let findings = match args.format.has_findings() {
        true => {
            let extensions = args.extensions.load()?;
            let rows = |(_, session): (_, &Session)| {
                let found = analysis::findings(&mut session.clone(), &extensions)?;
                Ok(fathom_diagnose::finding_rows(&found))
            };
            let rows = opened.members().map(rows);
            Some(rows.collect::<Result<Vec<_>, Failure>>()?)
        }
        false => None,
    };
    let db = Db::open_set_latest(&mut opened, &Limits::default()).map_err(Failure::input)?;
    if let Some(findings) = findings {
        db.set_findings(&findings).map_err(Failure::input)?;
    }
    let members = opened.members().map(|(member, session)| Member {
        host: &member.host,
        meta: session.meta(),
        clock: &member.clock.map,
    });
    let members: Vec<Member<'_>> = members.collect();
    let (_, reference) = opened
        .members()
        .next()
        .ok_or_else(|| Failure::input(anyhow!("{}: the set is empty", path.display())))?;
    let selection = selection(args, reference)?;
    output(args, &|out, text, progress| {
        export_set(&db, &members, args.format, &selection, text, out, progress)
    })
}

/// The selection by `--from`, `--until`, and `--where`, on the clock of `session`.
fn selection(args: &ExportArgs, session: &Session) -> Result<Selection, Failure> {
    let clock = &session.meta().clock;
    let window = analysis::window(args.from.as_deref(), args.until.as_deref(), clock);
    let (from_ns, until_ns) = window.map_err(Failure::input)?;
    Ok(Selection {
        from_ns,
        until_ns,
        condition: args.condition.clone(),
    })
}

fn note(outcome: &Outcome) {
    for note in &outcome.notes {
        errln!("fathom: {note}");
    }
}

/// Writes an export to an output, and reports progress.
type Writer<'a> = dyn Fn(&mut (dyn Write + Send), Text, &mut dyn FnMut(u64, u64)) -> fathom_export::Result<Outcome>
    + 'a;

/// Writes an export to the file that the options name, or to standard output.
fn output(args: &ExportArgs, writer: &Writer<'_>) -> Result<u8, Failure> {
    let outcome = match &args.output {
        Some(path) => {
            let text = Text {
                terminal: false,
                exact: args.exact,
            };
            to_file(writer, text, path)?
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
            write(writer, text, stdout).map_err(Failure::input)?
        }
    };
    note(&outcome);
    Ok(0)
}

/// Memory of the database while the page is made.
const PAGE_MEMORY: u64 = 1 << 30;

/// Writes a session as a page.
fn page(args: &ExportArgs, session: &Path) -> Result<u8, Failure> {
    if args.from.is_some() || args.until.is_some() || args.condition.is_some() {
        return Err(Failure::input(anyhow!(
            "--from, --until, and --where do not apply to --format page: it shows the whole \
             session; save a part of it with the Share menu of fathom ui"
        )));
    }
    if args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::input(anyhow!(
            "--format page is not for a terminal: name a file with -o"
        )));
    }
    let extensions = args.extensions.load()?;
    let html = fathom_server::shared_page(session, PAGE_MEMORY, extensions);
    let html = html.map_err(Failure::input)?;
    match &args.output {
        Some(path) => {
            let failed = |error: io::Error| {
                let what = format!("cannot write {}", path.display());
                Failure::input(anyhow::Error::new(error).context(what))
            };
            let (new, mut file) = NewFile::begin(path).map_err(failed)?;
            file.write_all(html.as_bytes()).map_err(failed)?;
            new.finish().map_err(failed)?;
        }
        None => std::io::stdout()
            .write_all(html.as_bytes())
            .map_err(Failure::input)?,
    }
    Ok(0)
}

fn write(
    writer: &Writer<'_>,
    text: Text,
    out: impl Write + Send,
) -> fathom_export::Result<Outcome> {
    // If the output goes to a terminal, a bar would overwrite it.
    let bar = (!text.terminal).then(|| Bar::new("exporting", Unit::Rows));
    let mut progress = |done, total| {
        if let Some(bar) = &bar {
            bar.set(done, total);
        }
    };
    let mut out = BufWriter::with_capacity(1 << 18, out);
    writer(&mut out, text, &mut progress)
}

/// Writes a temporary file next to the output and renames it once it is complete, so that a partial
/// export never looks complete. A pipe or device is written directly.
fn to_file(writer: &Writer<'_>, text: Text, path: &Path) -> Result<Outcome, Failure> {
    let failed = || format!("cannot write {}", path.display());
    let input = |error: io::Error| Failure::input(anyhow::Error::new(error).context(failed()));
    if fs::metadata(path).is_ok_and(|info| !info.is_file() && !info.is_dir()) {
        trust(path).with_context(failed).map_err(Failure::input)?;
        let file = File::options().write(true).open(path).map_err(input)?;
        return write(writer, text, file).map_err(Failure::input);
    }
    let (new, file) = NewFile::begin(path).map_err(input)?;
    let outcome = write(writer, text, file).map_err(Failure::input)?;
    new.finish().map_err(input)?;
    Ok(outcome)
}

/// The files of a trace, in a directory that takes its name once it is whole.
struct Files(NewDir);

impl TraceFiles for Files {
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.append(name, bytes)
    }
}

fn to_directory(
    db: &Db,
    session: &Session,
    selection: &Selection,
    path: &Path,
) -> Result<Outcome, Failure> {
    let failed = |error: io::Error| {
        let error = match error.kind() {
            io::ErrorKind::AlreadyExists => anyhow!("it exists; choose another name, or remove it"),
            _ => error.into(),
        };
        Failure::input(error.context(format!("cannot write {}", path.display())))
    };
    let mut files = Files(NewDir::begin(path).map_err(failed)?);
    let bar = Bar::new("exporting", Unit::Rows);
    let mut progress = |done, total| bar.set(done, total);
    let outcome = export_ctf(db, session.meta(), selection, &mut files, &mut progress);
    let outcome = outcome.map_err(Failure::input)?;
    files.0.finish().map_err(failed)?;
    Ok(outcome)
}

/// Whether the user can have meant this pipe or device. Another user could place a pipe, or a link
/// to one, at the path of a regular file to receive the export.
fn trust(path: &Path) -> anyhow::Result<()> {
    let link = fs::symlink_metadata(path)?;
    let target = fs::metadata(path)?;
    let devices = target.file_type().is_char_device() || target.file_type().is_block_device();
    let owners = match devices {
        // Only root can create devices.
        true => vec![link.uid()],
        false => vec![link.uid(), target.uid()],
    };
    match owners.into_iter().find(|uid| *uid != 0 && !is_ours(*uid)) {
        None => Ok(()),
        Some(uid) => Err(anyhow!(
            "it is not a regular file and belongs to user {uid}; remove it, or choose another name"
        )),
    }
}
