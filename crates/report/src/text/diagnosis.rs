//! Findings for a terminal.

use fathom_diagnose::{Diagnosis, Finding, Group, NotObservable, Severity};
use fathom_model::units::{count, duration, percent, share};
use fathom_query::escape::{self, shell_words, wrap};

use super::style::Style;
use super::{MAX_WIDTH, MIN_WIDTH};

/// Width of the names of a finding's parts.
const LABEL: usize = 10;

/// Findings as text, at most `width` characters wide. `session` is how the user
/// names the session, followed by the options with which the findings were made; `started_at_ns` its beginning, from which times are counted; `minor` adds
/// the minor notes. Text that the recorded program controls is escaped.
pub fn diagnosis_to_text(
    diagnosis: &Diagnosis,
    session: &[&str],
    started_at_ns: i64,
    width: usize,
    color: bool,
    minor: bool,
) -> String {
    let mut page = Page {
        out: String::new(),
        width: width.clamp(MIN_WIDTH, MAX_WIDTH),
        style: Style { color },
        session,
        started_at_ns,
        span_ns: diagnosis.span_ns,
    };
    page.head(diagnosis, minor);
    for (i, finding) in diagnosis.findings.iter().enumerate() {
        page.finding(i + 1, finding);
    }
    if minor {
        page.minor(diagnosis);
    }
    page.rest(diagnosis);
    page.out
}

struct Page<'a> {
    out: String,
    width: usize,
    style: Style,
    session: &'a [&'a str],
    started_at_ns: i64,
    span_ns: i64,
}

impl Page<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn head(&mut self, diagnosis: &Diagnosis, minor: bool) {
        let summary = diagnosis.summary.sentences.join(" ");
        for line in wrap(&escape::text(&summary), self.width) {
            self.line(&line);
        }
        let findings = match diagnosis.findings.len() {
            0 => self.style.good("No findings"),
            1 => self.style.bold("1 finding"),
            n => self.style.bold(&format!("{} findings", count(n as i64))),
        };
        let more = match diagnosis.minor.len() {
            n if n == 0 || minor => String::new(),
            n => format!("; --all adds {}", counted(n as i64, "minor note")),
        };
        let line = format!(
            "{findings}: {} checked {}{more}",
            counted(diagnosis.rules as i64, "rule"),
            counted(diagnosis.calls as i64, "call"),
        );
        self.line(&line);
    }

    /// Patterns that cost little, numbered on from the findings.
    fn minor(&mut self, diagnosis: &Diagnosis) {
        if diagnosis.minor.is_empty() {
            return;
        }
        let title = self.style.bold("Minor notes");
        self.line(&format!(
            "\n{title}: patterns that cost less than a finding does"
        ));
        for (i, finding) in diagnosis.minor.iter().enumerate() {
            let number = diagnosis.findings.len() + i + 1;
            let cost = finding.cost_ns.map_or(String::new(), duration);
            let text = format!("{number}. {}, {cost}: {}", finding.rule, finding.title);
            for (i, line) in wrap(&escape::text(&text), self.width - 3)
                .iter()
                .enumerate()
            {
                let indent = if i == 0 { "" } else { "   " };
                self.line(&format!("{indent}{line}"));
            }
        }
    }

    /// A part of a finding: its name at the left, the text broken at its right.
    fn part(&mut self, label: &str, text: &str) {
        let text = escape::text(text);
        for (i, line) in wrap(&text, self.width - LABEL - 5).iter().enumerate() {
            let label = if i == 0 { label } else { "" };
            let label = self.style.dim(&format!("{label:<LABEL$}"));
            self.line(&format!("   {label}  {line}"));
        }
    }

    fn finding(&mut self, number: usize, finding: &Finding) {
        let severity = finding.severity.name();
        let severity = match finding.severity {
            Severity::High => self.style.bad(severity),
            Severity::Medium => self.style.bold(severity),
            Severity::Low => self.style.dim(severity),
        };
        let group = match finding.group {
            Group::Correctness => "correctness",
            Group::Performance => "performance",
        };
        let rule = self.style.bold(finding.rule);
        self.line(&format!("\n{number}. {rule}  {severity}, {group}"));
        let title = escape::text(&finding.title);
        for line in wrap(&title, self.width - 3) {
            self.line(&format!("   {line}"));
        }
        if let Some(cost) = finding.cost_ns {
            let part = share(cost as f64, self.span_ns as f64).map_or(String::new(), percent);
            let how = match finding.cost_how.as_str() {
                "" => String::new(),
                how => format!(": {how}"),
            };
            let over = match cost > self.span_ns {
                true => ", summed over threads that waited at the same time",
                false => "",
            };
            let text = format!("{} ({part} of the recording{over}){how}", duration(cost));
            self.part("cost", &text);
        }
        self.part("who", &finding.subject.text());
        // A number that is 0 shows nothing.
        let numbers = finding.evidence.iter().filter(|e| e.value != 0.0);
        let numbers: Vec<String> = numbers.map(|e| e.words(finding.rule)).collect();
        self.part("evidence", &numbers.join(", "));
        for (i, example) in finding.examples.iter().enumerate() {
            let mut text = format!(
                "request {} at {} {}",
                example.rid,
                duration(example.ts_ns.saturating_sub(self.started_at_ns)),
                example.syscall,
            );
            if let Some(path) = &example.path {
                text.push_str(&format!(" {path}"));
            }
            if let Some(offset) = example.offset {
                text.push_str(&format!(" offset {offset}"));
            }
            if let Some(ret) = example.ret {
                text.push_str(&format!(" = {ret}"));
            }
            text.push_str(&format!(", {}", duration(example.dur_ns)));
            self.part(if i == 0 { "examples" } else { "" }, &text);
        }
        for (i, site) in finding.code.iter().enumerate() {
            self.part(if i == 0 { "code" } else { "" }, &site.text());
        }
        for caveat in &finding.caveats {
            self.part("unsure", caveat);
        }
        if !finding.also.is_empty() {
            let text = format!("also seen as: {}", also(finding));
            for line in wrap(&escape::text(&text), self.width - 3) {
                self.line(&format!("   {line}"));
            }
        }
        self.part("instead", &finding.advice);
        // Not broken: it is there to be copied.
        let label = self.style.dim(&format!("{:<LABEL$}", "all calls"));
        let number = number.to_string();
        let words = [&["fathom", "query"], self.session, &["--finding", &number]];
        let command = shell_words(words.concat());
        self.line(&format!("   {label}  {command}"));
    }

    fn rest(&mut self, diagnosis: &Diagnosis) {
        for more in &diagnosis.more {
            self.line(&format!(
                "\n{} of {}",
                counted(more.findings as i64, "more finding"),
                more.rule
            ));
        }
        self.unseen("Not observable", &diagnosis.not_observable);
        self.unseen("Partly observable", &diagnosis.partly_observable);
    }

    /// Rules that could not look, those with the same reason together.
    fn unseen(&mut self, title: &str, unseen: &[NotObservable]) {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for of in unseen {
            match reasons.iter_mut().find(|(reason, _)| *reason == of.reason) {
                Some((_, rules)) => rules.push(of.rule),
                None => reasons.push((&of.reason, vec![of.rule])),
            }
        }
        if !reasons.is_empty() {
            let title = self.style.bold(title);
            self.line(&format!("\n{title}"));
        }
        for (reason, rules) in reasons {
            let text = format!("{}: {reason}", rules.join(", "));
            for line in wrap(&escape::text(&text), self.width - 3) {
                self.line(&format!("   {line}"));
            }
        }
    }
}

/// Rules that are about the same calls, with their subjects where these are others.
fn also(finding: &Finding) -> String {
    let mut parts: Vec<String> = Vec::new();
    for also in &finding.also {
        let subject = also.subject.text();
        let part = match subject == finding.subject.text() {
            true => also.rule.to_owned(),
            false => format!("{} ({subject})", also.rule),
        };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join(", ")
}

/// `1 rule`, `2 rules`.
pub(super) fn counted(n: i64, one: &str) -> String {
    format!("{} {one}{}", count(n), if n == 1 { "" } else { "s" })
}
