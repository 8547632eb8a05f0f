//! The findings of a report.

use fathom_diagnose::Severity;
use fathom_model::units::count;
use fathom_query::escape::{self, shell_words, wrap};

use super::Page;

/// Width of the column of severities.
const LABEL: usize = 8;

impl Page<'_> {
    /// How bad a finding is, in a column of its own.
    pub(super) fn severity(&self, severity: Severity) -> String {
        let label = format!("{:<LABEL$}", severity.name());
        match severity {
            Severity::High => self.style.bad(&label),
            Severity::Medium => self.style.bold(&label),
            Severity::Low => self.style.dim(&label),
        }
    }

    pub(super) fn findings(&mut self) {
        let Some(findings) = &self.report.findings else {
            return;
        };
        let number = |n: usize| count(n as i64);
        if let Some(reason) = &findings.left_out {
            self.title("Findings", "");
            self.line(&format!("  {reason}"));
            return;
        }
        let looked = match findings.not_observable {
            0 => format!("{} rules checked", number(findings.rules)),
            n => format!(
                "{} rules checked, {} skipped (not observable)",
                number(findings.rules),
                number(n)
            ),
        };
        if findings.count == 0 {
            self.title("Findings", &looked);
            let none = match self.report.why.facts.missing_requests.is_empty() {
                true => self.style.good("No findings"),
                false => "No findings in the rows that are left".to_owned(),
            };
            self.line(&format!("  {none}"));
            return;
        }
        let note = match findings.correctness {
            0 => format!("{}; {looked}", number(findings.count)),
            n => format!(
                "{}, of which {} put data at risk; {looked}",
                number(findings.count),
                number(n)
            ),
        };
        self.title("Findings", &note);
        for finding in &findings.top {
            let label = self.severity(finding.severity);
            let text = format!("{}: {}", finding.rule, finding.title);
            let text = escape::text(&text);
            for (i, line) in wrap(&text, self.width - LABEL - 2).iter().enumerate() {
                let label = if i == 0 {
                    label.clone()
                } else {
                    " ".repeat(LABEL)
                };
                self.line(&format!("  {label}{line}"));
            }
            for site in &finding.code {
                let site = site.text();
                let site = format!("in {}", escape::text(&site));
                self.line(&format!("  {}{}", " ".repeat(LABEL), self.style.dim(&site)));
            }
        }
        let command = shell_words(["fathom", "diagnose", &self.report.storage.location]);
        let more = match findings.count.saturating_sub(findings.top.len()) {
            0 => String::new(),
            n => format!("{} more, ", number(n)),
        };
        self.line(&format!(
            "  {more}evidence, examples and what to do instead: {command}"
        ));
    }
}
