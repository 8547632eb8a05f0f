//! Findings of rules that users wrote (crate `extensions`), next to the findings of fathom's rules.
//!
//! They claim no time: their cost is what the rule says, and other findings may be about the same
//! time. They are never cached, so a changed rule counts at once.

use fathom_session::Session;

use crate::aliases;
use crate::code;
use crate::engine::{Diagnosis, MAX_PER_RULE, More, rank};
use crate::finding::{
    Confidence, Evidence, Example, Finding, Group, NotObservable, Severity, Subject,
};
use crate::rules::catalog;
use crate::session::DiagnoseError;

/// The common part of a rule's findings.
#[derive(Clone, Debug)]
pub struct UserRule {
    pub id: &'static str,
    pub group: Group,
    /// How its cost is estimated.
    pub cost_how: String,
    /// Its file.
    pub page: String,
    /// SQL that lists what it found.
    pub query: String,
}

/// A finding of such a rule.
#[derive(Clone, Debug, Default)]
pub struct UserFinding {
    /// `None`: by its cost, or medium if it has none.
    pub severity: Option<Severity>,
    /// Nanoseconds.
    pub cost_ns: Option<i64>,
    pub title: String,
    pub subject: Subject,
    pub evidence: Vec<Evidence>,
    pub examples: Vec<Example>,
    pub advice: String,
}

/// Whether a rule of fathom has this id, or had it before.
pub fn is_rule(id: &str) -> bool {
    catalog()
        .iter()
        .any(|rule| rule.id == id || aliases::aliases(rule.id).contains(&id))
}

impl Diagnosis {
    /// Adds the findings of a rule that has looked at `session`.
    ///
    /// # Errors
    /// [`DiagnoseError::Read`] when the code of the examples cannot be read.
    pub fn add_user_rule(
        &mut self,
        session: &Session,
        rule: &UserRule,
        found: Vec<UserFinding>,
    ) -> Result<(), DiagnoseError> {
        self.rules += 1;
        let span_ns = self.span_ns;
        let finish = |found: UserFinding| {
            let by_cost = |cost| Severity::by_share(cost, span_ns);
            let by_cost = found.cost_ns.map_or(Severity::Medium, by_cost);
            Finding {
                rule: rule.id,
                aliases: Vec::new(),
                group: rule.group,
                severity: found.severity.unwrap_or(by_cost),
                confidence: Confidence::High,
                cost_ns: found.cost_ns,
                cost_how: rule.cost_how.clone(),
                title: found.title,
                subject: found.subject,
                evidence: found.evidence,
                examples: found.examples,
                code: Vec::new(),
                query: rule.query.clone(),
                advice: found.advice,
                page: rule.page.clone(),
                caveats: Vec::new(),
                also: Vec::new(),
                scopes: Vec::new(),
            }
        };
        let mut own: Vec<Finding> = found.into_iter().map(finish).collect();
        own.sort_by(rank);
        if own.len() > MAX_PER_RULE {
            self.more.push(More {
                rule: rule.id,
                findings: own.len() - MAX_PER_RULE,
            });
            own.truncate(MAX_PER_RULE);
        }
        code::add(session, &mut own).map_err(|(table, source)| DiagnoseError::Read {
            table: table.name,
            session: session.dir().to_owned(),
            source,
        })?;
        self.findings.append(&mut own);
        self.findings.sort_by(rank);
        Ok(())
    }

    /// Notes a rule that could not look.
    pub fn add_unchecked(&mut self, rule: &UserRule, reason: String) {
        self.not_observable.push(NotObservable {
            rule: rule.id,
            reason,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::is_rule;

    #[test]
    fn ids_and_former_ids_are_taken() {
        assert!(is_rule("sync-storm") && is_rule("reopen"));
        assert!(!is_rule("my-rule"));
    }
}
