//! The rules over a stored session.

use std::path::PathBuf;

use fathom_model::tables::{FILES, PROCESSES, SYSCALLS, Table};
use fathom_session::{Session, SessionError};

use crate::call::COLUMNS;
use crate::engine::{Diagnosis, Engine};
use crate::rule::Input;

/// Why a session could not be diagnosed.
#[derive(Debug, thiserror::Error)]
pub enum DiagnoseError {
    /// A table could not be read.
    #[error("cannot read table {table} of {}", session.display())]
    Read {
        /// The table.
        table: &'static str,
        /// Directory of the session.
        session: PathBuf,
        /// What happened.
        source: SessionError,
    },
}

/// Runs all rules over a session.
///
/// # Errors
/// [`DiagnoseError::Read`] when a part cannot be read.
pub fn diagnose(session: &Session) -> Result<Diagnosis, DiagnoseError> {
    diagnose_while(session, &|| true)
}

/// The same as long as `wanted` says that somebody waits for it; what comes after
/// that is about a part of the session.
///
/// # Errors
/// [`DiagnoseError::Read`] when a part cannot be read.
pub fn diagnose_while(
    session: &Session,
    wanted: &dyn Fn() -> bool,
) -> Result<Diagnosis, DiagnoseError> {
    let mut engine = Engine::default();
    let meta = session.meta();
    if meta.totals.lost > 0 || meta.options.leave_calls_out() || !session.problems().is_empty() {
        engine.has_gaps();
    }
    if meta.content.is_none() {
        engine.lacks(Input::Content, "recorded without --content hash");
    }
    for (input, table) in [
        (Input::Faults, "faults"),
        (Input::Block, "block"),
        (Input::Interrupts, "irqs"),
    ] {
        if session.part_infos(table).is_empty() {
            engine.lacks(input, &format!("table {table} has no rows"));
        }
    }
    let mut read = |table: &'static Table, columns| {
        session
            .for_each_batch(table, columns, |batch| {
                if wanted() {
                    engine.feed(&batch);
                }
                Ok(())
            })
            .map_err(|source: SessionError| DiagnoseError::Read {
                table: table.name,
                session: session.dir().to_owned(),
                source,
            })
    };
    read(&FILES, None)?;
    read(&PROCESSES, None)?;
    read(&SYSCALLS, Some(COLUMNS))?;
    Ok(engine.diagnosis())
}
