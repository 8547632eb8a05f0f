//! Findings of the diagnosis in a report.

use fathom_diagnose::{CachedDiagnosis, DiagnoseError, Diagnosis, Finding, Group, Summary, cached};
use fathom_extensions::{ExtensionError, Extensions};
use fathom_model::units::count;
use fathom_session::Session;
use serde::Serialize;

/// Findings that a report shows.
const TOP: usize = 5;
/// Calls up to which a report diagnoses the session itself: a second or two. Beyond that it has
/// the findings that `fathom diagnose` has kept, or names the command.
const MAX_CALLS: u64 = 1_000_000;

/// Findings of the diagnosis.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Findings {
    /// Where the time went.
    pub summary: Summary,
    /// The most important findings.
    pub top: Vec<Finding>,
    /// All of them.
    pub count: usize,
    /// Of which data is at stake.
    pub correctness: usize,
    /// Rules that looked.
    pub rules: usize,
    /// Rules that could not look.
    pub not_observable: usize,
    /// How long it took, nanoseconds.
    pub took_ns: u64,
    /// Why the session was not diagnosed; null when it was.
    pub left_out: Option<String>,
}

impl Findings {
    /// The findings of a report, from a diagnosis that took `took_ns`, or without one because of
    /// `left_out`.
    pub(crate) fn of(diagnosis: Result<&Diagnosis, String>, took_ns: u128) -> Self {
        match diagnosis {
            Ok(diagnosis) => Self::from_diagnosis(diagnosis, took_ns),
            Err(reason) => Self {
                left_out: Some(reason),
                ..Self::default()
            },
        }
    }

    fn from_diagnosis(diagnosis: &Diagnosis, took_ns: u128) -> Self {
        let all = &diagnosis.findings;
        let more: usize = diagnosis.more.iter().map(|more| more.findings).sum();
        Self {
            summary: diagnosis.summary.clone(),
            top: all.iter().take(TOP).cloned().collect(),
            count: all.len() + more,
            correctness: all.iter().filter(|f| f.group == Group::Correctness).count(),
            rules: diagnosis.rules,
            not_observable: diagnosis.not_observable.len(),
            took_ns: u64::try_from(took_ns).unwrap_or(u64::MAX),
            left_out: None,
        }
    }
}

/// Diagnoses a session that is small enough to do so in passing, or takes the findings that were
/// kept; `Err` in the answer says why there are none.
///
/// # Errors
/// When the session cannot be read, or a view of `extensions` is wrong.
pub fn diagnosis_in_passing(
    session: &Session,
    extensions: &Extensions,
) -> Result<Result<Diagnosis, String>, ExtensionError> {
    let mut diagnosis = own_in_passing(session)?;
    if let Ok(diagnosis) = &mut diagnosis {
        extensions.diagnose(session, diagnosis, &|| true)?;
    }
    Ok(diagnosis)
}

/// The same of fathom's own rules.
fn own_in_passing(session: &Session) -> Result<Result<Diagnosis, String>, DiagnoseError> {
    let calls = session.rows("syscalls");
    if calls <= MAX_CALLS {
        return fathom_diagnose::diagnose(session).map(Ok);
    }
    let notice = match cached(session) {
        CachedDiagnosis::Findings(diagnosis) => return Ok(Ok(diagnosis)),
        CachedDiagnosis::Nothing => String::new(),
        CachedDiagnosis::Unusable(why) => format!(" ({why})"),
    };
    let calls = count(i64::try_from(calls).unwrap_or(i64::MAX));
    Ok(Err(format!(
        "not diagnosed, as {calls} calls take a while: run `fathom diagnose`{notice}"
    )))
}
