//! Findings cached in a large session, so that every call is read only once.
//!
//! They are valid for one state of the session and one version of fathom, and are recomputed for
//! any other. The file is untrusted like all data on disk: it may be damaged or written by another
//! program. Only the text and numbers of findings are taken from it; the texts of a rule come from
//! the rule.

use std::hash::Hasher;

use fathom_model::tables::SYSCALLS;
use fathom_session::{Session, on_latest, read_findings, write_findings};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use crate::aliases::aliases;
use crate::engine::{Diagnosis, MAX_PER_RULE, More};
use crate::finding::{
    Also, Confidence, Evidence, Example, Finding, NotObservable, Severity, Subject,
};
use crate::rule::RuleInfo;
use crate::rules;
use crate::session::{DiagnoseError, diagnose_while};
use crate::site::Site;
use crate::summary::Summary;

/// Calls from which on findings are kept: fewer are looked at in half a second, and their
/// session stays as it was recorded.
const LEAST_CALLS: u64 = 1_000_000;

/// The fathom whose rules these are: another one may find something else.
const FATHOM: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("FATHOM_RULES"));

/// Above this a number of nanoseconds or of findings is none that a session can have.
const MOST: u64 = 1 << 53;

/// The contents of the file in a session.
#[derive(Debug)]
pub enum CachedDiagnosis {
    /// Nothing that is about the session as it is, by these rules.
    Nothing,
    /// The result of [`crate::diagnose`].
    Findings(Diagnosis),
    /// Something that is not used, and why, in one sentence.
    Unusable(String),
}

/// The result of [`diagnose_once`].
#[derive(Debug)]
pub struct NoticedDiagnosis {
    /// The findings.
    pub diagnosis: Diagnosis,
    /// The problem with the cached findings, in one sentence.
    pub notice: Option<String>,
}

/// The findings that are kept of a session, if there are any that hold.
pub fn cached(session: &Session) -> CachedDiagnosis {
    recall(session, LEAST_CALLS)
}

/// Findings of a session: the cached ones, otherwise from [`diagnose_while`]; these are then cached
/// if the session is large, closed, and writable.
///
/// # Errors
/// [`DiagnoseError::Read`] when a part cannot be read.
pub fn diagnose_once(
    session: &Session,
    wanted: &dyn Fn() -> bool,
) -> Result<NoticedDiagnosis, DiagnoseError> {
    once(session, wanted, LEAST_CALLS)
}

/// As [`diagnose_once`], of the session's newest state when parts are merged while they are read.
///
/// # Errors
/// The errors of [`diagnose_once`].
pub fn diagnose_latest(
    session: &mut Session,
    wanted: &dyn Fn() -> bool,
) -> Result<NoticedDiagnosis, DiagnoseError> {
    on_latest(session, |session| diagnose_once(session, wanted))
}

fn once(
    session: &Session,
    wanted: &dyn Fn() -> bool,
    least: u64,
) -> Result<NoticedDiagnosis, DiagnoseError> {
    let notice = match recall(session, least) {
        CachedDiagnosis::Findings(diagnosis) => {
            let notice = None;
            return Ok(NoticedDiagnosis { diagnosis, notice });
        }
        CachedDiagnosis::Nothing => None,
        CachedDiagnosis::Unusable(why) => Some(why),
    };
    // Taken before: what changes meanwhile makes it another one.
    let before = state(session, least);
    let diagnosis = diagnose_while(session, wanted)?;
    // A diagnosis that was abandoned covers only a part of the session.
    if let Some(before) = before.filter(|_| wanted()) {
        keep(session, before, &diagnosis, least);
    }
    Ok(NoticedDiagnosis { diagnosis, notice })
}

/// The identity of the session's state, if findings of the session are cached.
fn state(session: &Session, least: u64) -> Option<u64> {
    let large = session.rows(SYSCALLS.name) >= least;
    large.then(|| session.fingerprint()).flatten()
}

/// The state from which findings were computed.
#[derive(Serialize, Deserialize)]
struct MadeOf {
    fathom: String,
    session: String,
    /// Of the findings, to tell whether they are as they were written.
    hash: String,
    /// The bits of the numbers of all evidence: digits are rounded as they are read.
    numbers: Vec<u64>,
}

/// The file: what `--format json` prints, and what it was made of.
#[derive(Serialize)]
struct CacheFile<'a> {
    made_of: MadeOf,
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
}

/// The part of it that is read first.
#[derive(Deserialize)]
struct Head {
    /// Missing in what a recorder that was killed has left.
    made_of: Option<MadeOf>,
}

#[derive(Deserialize)]
struct ReadDiagnosis {
    summary: Summary,
    findings: Vec<ReadFinding>,
    minor: Vec<ReadFinding>,
    not_observable: Vec<ReadReason>,
    partly_observable: Vec<ReadReason>,
    more: Vec<ReadMore>,
    rules: usize,
    calls: u64,
    span_ns: i64,
}

/// Texts of the rule, as opposed to the finding, are left out.
#[derive(Deserialize)]
struct ReadFinding {
    rule: String,
    severity: Severity,
    confidence: Confidence,
    cost_ns: Option<i64>,
    title: String,
    subject: Subject,
    evidence: Vec<ReadEvidence>,
    examples: Vec<Example>,
    #[serde(default)]
    code: Vec<Site>,
    query: String,
    advice: String,
    caveats: Vec<String>,
    also: Vec<ReadAlso>,
}

#[derive(Deserialize)]
struct ReadAlso {
    rule: String,
    subject: Subject,
}

#[derive(Deserialize)]
struct ReadEvidence {
    name: String,
}

#[derive(Deserialize)]
struct ReadReason {
    rule: String,
    reason: String,
}

#[derive(Deserialize)]
struct ReadMore {
    rule: String,
    findings: usize,
}

fn hex(number: u64) -> String {
    format!("{number:016x}")
}

fn hash_of(diagnosis: &Diagnosis) -> Option<String> {
    let mut hash = XxHash64::with_seed(0);
    hash.write(&serde_json::to_vec(diagnosis).ok()?);
    Some(hex(hash.finish()))
}

fn recall(session: &Session, least: u64) -> CachedDiagnosis {
    let Some(state) = state(session, least) else {
        return CachedDiagnosis::Nothing;
    };
    let unusable = |why: &str| {
        CachedDiagnosis::Unusable(format!(
            "findings.json in the session {why}: it is not used, all calls are looked at again"
        ))
    };
    let json = match read_findings(session.dir()) {
        Ok(Some(json)) => json,
        Ok(None) => return CachedDiagnosis::Nothing,
        Err(_) => return unusable("cannot be read, or is no file of fathom's"),
    };
    let damaged = || unusable("is damaged, or is no file of fathom's");
    let Ok(head) = serde_json::from_slice::<Head>(&json) else {
        return damaged();
    };
    let Some(made_of) = head
        .made_of
        .filter(|of| of.fathom == FATHOM && of.session == hex(state))
    else {
        return CachedDiagnosis::Nothing;
    };
    let read = serde_json::from_slice(&json).ok();
    match read.and_then(|read: ReadDiagnosis| read.diagnosis(&made_of)) {
        Some(diagnosis) => CachedDiagnosis::Findings(diagnosis),
        None => damaged(),
    }
}

/// Keeps a diagnosis of the session as it was `before`, unless it has changed. Media that cannot
/// be written to are no failure.
fn keep(session: &Session, before: u64, diagnosis: &Diagnosis, least: u64) {
    let now = Session::open(session.dir()).ok();
    if now.and_then(|session| state(&session, least)) != Some(before) {
        return;
    }
    let Some(hash) = hash_of(diagnosis).filter(|_| makes_sense(diagnosis)) else {
        return;
    };
    let all = diagnosis.findings.iter().chain(&diagnosis.minor);
    let evidence = all.flat_map(|f| &f.evidence);
    let made_of = MadeOf {
        fathom: FATHOM.to_owned(),
        session: hex(before),
        hash,
        numbers: evidence.map(|e| e.value.to_bits()).collect(),
    };
    let written = CacheFile { made_of, diagnosis };
    if let Ok(json) = serde_json::to_vec(&written) {
        let _ = write_findings(session.dir(), &json);
    }
}

/// Whether a diagnosis can be one: what adds up its numbers must not overflow.
fn makes_sense(diagnosis: &Diagnosis) -> bool {
    let duration = |ns: i64| u64::try_from(ns).is_ok_and(|ns| ns < MOST);
    let most = rules::catalog().len();
    duration(diagnosis.span_ns)
        && diagnosis.calls < MOST
        && diagnosis.rules <= most
        && diagnosis.not_observable.len() <= most
        && diagnosis.partly_observable.len() <= most
        && diagnosis.more.len() <= most
        && diagnosis
            .more
            .iter()
            .all(|m| (m.findings as u64) < MOST >> 8)
        && diagnosis.findings.len() <= most * MAX_PER_RULE
        && diagnosis.minor.len() <= most * MAX_PER_RULE
        && diagnosis
            .findings
            .iter()
            .chain(&diagnosis.minor)
            .all(|f| f.cost_ns.is_none_or(duration))
}

fn info(rule: &str) -> Option<&'static RuleInfo> {
    rules::catalog().into_iter().find(|info| info.id == rule)
}

fn all(read: Vec<ReadFinding>, numbers: &mut impl Iterator<Item = f64>) -> Option<Vec<Finding>> {
    read.into_iter().map(|read| read.finding(numbers)).collect()
}

impl ReadDiagnosis {
    /// The diagnosis, if it is the one that was written.
    fn diagnosis(self, made_of: &MadeOf) -> Option<Diagnosis> {
        let mut numbers = made_of.numbers.iter().map(|bits| f64::from_bits(*bits));
        let reasons = |read: Vec<ReadReason>| {
            let known = read.into_iter().map(|read| {
                Some(NotObservable {
                    rule: info(&read.rule)?.id,
                    reason: read.reason,
                })
            });
            known.collect::<Option<Vec<_>>>()
        };
        let more = self.more.into_iter().map(|read| {
            Some(More {
                rule: info(&read.rule)?.id,
                findings: read.findings,
            })
        });
        let diagnosis = Diagnosis {
            summary: self.summary,
            findings: all(self.findings, &mut numbers)?,
            minor: all(self.minor, &mut numbers)?,
            not_observable: reasons(self.not_observable)?,
            partly_observable: reasons(self.partly_observable)?,
            more: more.collect::<Option<_>>()?,
            rules: self.rules,
            calls: self.calls,
            span_ns: self.span_ns,
        };
        let as_written = hash_of(&diagnosis)? == made_of.hash;
        (as_written && makes_sense(&diagnosis)).then_some(diagnosis)
    }
}

impl ReadFinding {
    fn finding(self, numbers: &mut impl Iterator<Item = f64>) -> Option<Finding> {
        let of_rule = info;
        let info = of_rule(&self.rule)?;
        let evidence = self.evidence.into_iter().map(|read| {
            Some(Evidence {
                name: read.name.into(),
                value: numbers.next()?,
            })
        });
        let also = self.also.into_iter().map(|read| {
            Some(Also {
                rule: of_rule(&read.rule)?.id,
                subject: read.subject,
            })
        });
        Some(Finding {
            rule: info.id,
            aliases: aliases(info.id),
            group: info.group,
            severity: self.severity,
            confidence: self.confidence,
            cost_ns: self.cost_ns,
            cost_how: info.cost.to_owned(),
            title: self.title,
            subject: self.subject,
            evidence: evidence.collect::<Option<_>>()?,
            examples: self.examples,
            code: self.code,
            query: self.query,
            advice: self.advice,
            page: info.page(),
            caveats: self.caveats,
            also: also.collect::<Option<_>>()?,
            // They have been settled.
            scopes: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests;
