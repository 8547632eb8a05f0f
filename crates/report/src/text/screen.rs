//! The report on one screen: what ran, where its time went and why, and what to ask next.

use fathom_model::units::{bytes, count, duration, percent, share};
use fathom_query::escape::{self, shell_words, shorten, wrap_in};

use super::table::{Column, render};
use super::{Page, blank_zero};
use crate::report::CallsOnFile;
use crate::section::sparkline;

/// Problems that are listed.
const PROBLEMS: usize = 2;
/// Columns of the longest bar.
const BAR: usize = 30;
/// Columns of a cause's name.
const CAUSE: usize = 28;
/// Share of the time below which a cause or a call is left out.
const TRIFLE: f64 = 0.01;

/// How much of each part is shown.
#[derive(Clone, Copy)]
pub(super) struct Amount {
    /// Whether the machine and the time in calls over time have their lines.
    asides: bool,
    /// Causes that have a bar.
    causes: usize,
    /// Findings that are listed.
    findings: usize,
    /// Lines of a finding's title.
    title: usize,
    /// Calls on files that are listed.
    costly: usize,
    /// Commands that lead on.
    next: usize,
}

/// Of screens that have no room for more: 24 lines of 80 columns.
pub(super) const LEAST: Amount = Amount {
    asides: false,
    causes: 2,
    findings: 1,
    title: 1,
    costly: 0,
    next: 2,
};

/// From the most on: the first for which the screen has room is taken.
pub(super) const AMOUNTS: [Amount; 4] = [
    Amount {
        asides: true,
        causes: 5,
        findings: 3,
        title: 2,
        costly: 4,
        next: 3,
    },
    Amount {
        asides: true,
        causes: 3,
        findings: 3,
        title: 1,
        costly: 2,
        next: 3,
    },
    Amount {
        asides: false,
        causes: 3,
        findings: 2,
        title: 1,
        costly: 1,
        next: 2,
    },
    LEAST,
];

impl Page<'_> {
    /// Everything on one screen.
    pub(super) fn screen(&mut self, amount: &Amount) {
        self.command_and_run();
        if amount.asides {
            self.machine();
        }
        self.some_problems(if amount.asides { 2 } else { 1 });
        self.why();
        self.causes(amount);
        self.some_findings(amount);
        self.costly(amount);
        if amount.asides {
            self.over_time();
        } else {
            self.out.push('\n');
        }
        self.accounts();
        self.what_next(amount);
    }

    /// Problems, each on so many lines.
    fn some_problems(&mut self, lines: usize) {
        let problems = &self.report.problems;
        for problem in problems.iter().take(PROBLEMS) {
            let mut mark = "! ";
            for line in wrap_in(&escape::text(problem), self.width - 2, lines) {
                let line = self.style.bad(&format!("{mark}{line}"));
                self.line(&line);
                mark = "  ";
            }
        }
        if problems.len() > PROBLEMS {
            let more = problems.len() - PROBLEMS;
            let noun = if more == 1 { "problem" } else { "problems" };
            let more = format!("! {more} more {noun}: --full");
            let line = self.style.bad(&more);
            self.line(&line);
        }
    }

    pub(super) fn why(&mut self) {
        self.title("Why", "");
        for sentence in &self.report.why.sentences {
            let text = super::story::with_ids(sentence, &self.report.why.facts);
            for line in super::story::lines(&text, self.width - 2) {
                self.line(&format!("  {line}"));
            }
        }
    }

    fn causes(&mut self, amount: &Amount) {
        let facts = &self.report.why.facts;
        if facts.all.is_empty() {
            return;
        }
        let total = facts.all.iter().map(|share| share.self_ns).sum::<i64>() as f64;
        let note = format!(
            "{} in {} requests; overlaps add up",
            duration(facts.total_ns),
            count(facts.requests)
        );
        self.title("Time by cause", &note);
        for (i, cause) in facts.all.iter().take(amount.causes).enumerate() {
            let part = share(cause.self_ns as f64, total).unwrap_or(0.0);
            if i > 0 && part < TRIFLE {
                break;
            }
            let filled = (part * BAR as f64).ceil() as usize;
            let name = cause.cause.to_string();
            let name = shorten(&escape::text(&name), CAUSE);
            let line = format!(
                "  {name:CAUSE$} {:>6} {:>9}  {}",
                percent(part),
                duration(cause.self_ns),
                "█".repeat(filled.min(BAR))
            );
            self.line(&line);
        }
    }

    fn some_findings(&mut self, amount: &Amount) {
        let Some(findings) = &self.report.findings else {
            return;
        };
        if let Some(reason) = &findings.left_out {
            self.title("Findings", reason);
            return;
        }
        let shown = findings.top.len().min(amount.findings);
        let note = match findings.count {
            0 if !self.report.why.facts.missing_requests.is_empty() => {
                format!(
                    "none in the rows that are left; {} rules checked",
                    findings.rules
                )
            }
            0 => format!("none; {} rules checked", findings.rules),
            n if n > shown => format!(
                "{} by {} rules, {} of them here",
                count(n as i64),
                findings.rules,
                count(shown as i64)
            ),
            n => format!("{} by {} rules", count(n as i64), findings.rules),
        };
        self.title("Findings", &note);
        for finding in findings.top.iter().take(amount.findings) {
            let text = format!("{}: {}", finding.rule, finding.title);
            let mut label = self.severity(finding.severity);
            let room = self.width - 10;
            for line in wrap_in(&escape::text(&text), room, amount.title) {
                self.line(&format!("  {label}{line}"));
                label = " ".repeat(8);
            }
        }
    }

    fn costly(&mut self, amount: &Amount) {
        let costly = &self.report.costly;
        if costly.is_empty() || amount.costly == 0 {
            return;
        }
        let totals = &self.report.totals;
        let mut note = format!(
            "{} · {} moved · {}",
            count(totals.calls),
            bytes(totals.bytes),
            totals.errors_in_words().join(" · "),
        );
        if totals.pending > 0 {
            note.push_str(&format!(" · {} had not ended", count(totals.pending)));
        }
        let mapped = &self.report.mapped;
        if mapped.seen > 0 {
            let faults = count(i64::try_from(mapped.seen).unwrap_or(i64::MAX));
            note.push_str(&format!(" · {faults} page faults"));
        }
        self.title("Costliest calls", &note);
        let columns = [
            Column::name("call"),
            Column::flexible("file"),
            Column::number("count", 0),
            Column::number("bytes", 0),
            Column::number("mean", 2),
            Column::number("max", 0),
            Column::number("total", 0),
            Column::number("share", 1),
        ];
        let total = totals.total_ns.saturating_add(mapped.total_ns) as f64;
        let matters = |(i, c): &(usize, &CallsOnFile)| {
            *i == 0 || share(c.total_ns as f64, total).is_some_and(|part| part >= TRIFLE)
        };
        let rows: Vec<Vec<String>> = costly
            .iter()
            .take(amount.costly)
            .enumerate()
            .take_while(matters)
            .map(|(_, c)| c)
            .map(|c| {
                vec![
                    c.syscall.clone(),
                    c.name(),
                    count(c.calls),
                    blank_zero(c.bytes, bytes),
                    duration(c.total_ns.checked_div(c.calls).unwrap_or(0)),
                    duration(c.max_ns),
                    duration(c.total_ns),
                    share(c.total_ns as f64, total).map_or("-".into(), percent),
                ]
            })
            .collect();
        render(&mut self.out, self.style, self.width, &columns, &rows);
    }

    fn over_time(&mut self) {
        if self.report.loss.stored == 0 {
            return;
        }
        let slices = &self.report.timeline.slices;
        let busy: Vec<i64> = slices.iter().map(|s| s.total_ns).collect();
        let graph = sparkline(&self.columns_of(&busy));
        self.out.push('\n');
        let what = match self.report.mapped.total_ns {
            0 => "Time in calls",
            _ => "Time in calls and page faults",
        };
        let line = format!("{} {graph}", self.style.bold(what));
        self.line(&line);
    }

    /// The calls that were seen and stored, and the cost of that.
    fn accounts(&mut self) {
        let (loss, cost) = (&self.report.loss, &self.report.cost);
        let number = |n: u64| count(i64::try_from(n).unwrap_or(i64::MAX));
        let parts: Vec<String> = loss
            .parts()
            .map(|(what, n)| format!("{what} {}", number(n)))
            .collect();
        let sum = if loss.balanced { "=" } else { "≠" };
        let plain = format!("seen {} {sum} {}", number(loss.seen), parts.join(" + "));
        let line = match loss.lost == 0 && loss.balanced {
            true => plain.clone(),
            false => self.style.bad(&plain),
        };
        let mut facts = Vec::new();
        if let Some(share) = cost.probe_share {
            facts.push(format!(
                "probes {} of the program's CPU time",
                percent(share)
            ));
        }
        if let Some(share) = cost.recorder_share {
            facts.push(format!("recorder {} of a CPU", percent(share)));
        }
        let facts = facts.join(" · ");
        if plain.chars().count() + 2 + facts.chars().count() <= self.width {
            let facts = self.style.dim(&facts);
            self.line(&format!("{line}  {facts}"));
        } else {
            self.line(&line);
            let facts = self.style.dim(&facts);
            self.line(&facts);
        }
    }

    fn what_next(&mut self, amount: &Amount) {
        self.out.push('\n');
        let place = &self.report.storage.location;
        let mut commands = Vec::new();
        if let Some(group) = self.report.why.facts.groups.first() {
            let rid = group.longest_rid.to_string();
            commands.push((
                shell_words(["fathom", "why", place, "--request", &rid]),
                "the longest request of the costliest kind",
            ));
        }
        commands.push((
            shell_words(["fathom", "report", place, "--full"]),
            "every table of this report",
        ));
        let some = self.report.findings.as_ref().is_some_and(|f| f.count > 0);
        commands.push(match some {
            true => (
                shell_words(["fathom", "diagnose", place]),
                "evidence, and what to do instead",
            ),
            false => (shell_words(["fathom", "ui", place]), "the page"),
        });
        commands.truncate(amount.next);
        let longest = commands.iter().map(|(c, _)| c.chars().count()).max();
        let longest = longest.unwrap_or(0);
        for (command, purpose) in commands {
            let purpose = format!("  # {purpose}");
            // A command is longer than the screen is wide rather than broken; its purpose is left out.
            let line = match longest + purpose.chars().count() <= self.width {
                true => format!("{command:longest$}{}", self.style.dim(&purpose)),
                false => command,
            };
            self.line(&line);
        }
    }
}
