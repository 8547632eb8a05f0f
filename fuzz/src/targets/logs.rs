//! Logs of strace and DIO, and descriptions of traces in CTF, for import.

use std::fs;
use std::path::Path;

use fastrand::Rng;
use fathom_import::{Format, ImportError, import};
use fathom_session::{Session, WriterOptions};

use super::Target;
use crate::{corpus, mutate};

/// Bytes of a log that a case starts from.
const BYTES: usize = 16 << 10;

/// Logs of all formats.
pub struct Logs {
    seeds: Vec<(Format, Vec<u8>)>,
    input: Vec<u8>,
}

impl Logs {
    /// Reads the logs of a corpus.
    pub fn new(dir: &Path) -> Self {
        let seeds = corpus::files(dir, "logs").into_iter().map(|path| {
            let name = path.to_string_lossy();
            let format = Format::ALL.iter().find(|f| name.ends_with(f.name()));
            (
                *format.expect("a name that ends with the format"),
                fs::read(path).expect("a log"),
            )
        });
        Self {
            seeds: seeds.collect(),
            input: Vec::new(),
        }
    }

    /// Some lines of a log.
    fn excerpt(&self, rng: &mut Rng) -> (Format, &[u8]) {
        let (format, log) = mutate::one(rng, &self.seeds);
        let line = |at: usize| {
            log[..at]
                .iter()
                .rposition(|b| *b == b'\n')
                .map_or(0, |at| at + 1)
        };
        let from = line(rng.usize(..=log.len()));
        (*format, &log[from..log.len().min(from + BYTES)])
    }
}

impl Target for Logs {
    fn case(&mut self, rng: &mut Rng) -> Result<(), String> {
        let (format, text) = self.excerpt(rng);
        let (_, other) = self.excerpt(rng);
        self.input = mutate::lines(rng, text, other);
        let format = *Format::ALL.get(rng.usize(..32)).unwrap_or(&format);
        let dir = super::scratch();
        let (log, session) = (dir.path().join("log"), dir.path().join("s.fathom"));
        if format.name() == "ctf" {
            // The description and a stream that may be none.
            fs::create_dir(&log).expect("the trace");
            fs::write(log.join("metadata"), &self.input).expect("the trace");
            fs::write(log.join("stream"), &self.input).expect("the trace");
        } else {
            fs::write(&log, &self.input).expect("the log");
        }
        let made = match import(
            &[log],
            Some(format),
            &session,
            WriterOptions::default(),
            &mut |_, _| {},
        ) {
            Ok(made) => made,
            Err(ImportError::NoTimes(_) | ImportError::NoCalls(_) | ImportError::NotCtf { .. }) => {
                return Ok(());
            }
            Err(e) => return Err(format!("not imported: {e}")),
        };
        // A line is a call or two (the beginning of one and another's end), one that fathom does
        // not record, a note, or a bad line.
        let lines = made.source.lines;
        if made.calls + made.source.other_calls + made.source.bad_lines > 2 * lines + 1 {
            return Err(format!(
                "{lines} lines made {} calls: {:?}",
                made.calls, made.source
            ));
        }
        let session = Session::open(&session).map_err(|e| format!("not a session: {e}"))?;
        if session.rows("syscalls") != made.calls || !session.problems().is_empty() {
            return Err(format!(
                "{} calls were imported, {} are stored: {:?}",
                made.calls,
                session.rows("syscalls"),
                session.problems()
            ));
        }
        Ok(())
    }

    fn keep(&mut self, path: &Path) {
        fs::write(path, &self.input).expect("the input");
    }
}
