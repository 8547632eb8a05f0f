//! The findings of a report.

use std::fmt::Write as _;

use fathom_diagnose::{Severity, Site};
use fathom_model::units::{count, duration};
use fathom_query::escape::shell_words;

use super::escape_html as esc;
use crate::report::Report;

pub(super) fn section(out: &mut String, report: &Report) {
    let Some(findings) = &report.findings else {
        return;
    };
    out.push_str("<section>\n<h2>Findings</h2>\n");
    let number = |n: usize| count(n as i64);
    if let Some(reason) = &findings.left_out {
        let _ = writeln!(out, "<p class=\"dim\">{}</p>", esc(reason));
    } else {
        let _ = writeln!(
            out,
            "<p class=\"dim\">{}{} rules checked, {} skipped (not observable)</p>",
            match (findings.count, findings.correctness) {
                (0, _) => "No findings; ".to_owned(),
                (1, 0) => "1 finding; ".to_owned(),
                (n, 0) => format!("{} findings; ", number(n)),
                (n, c) => format!(
                    "Findings: {}, of which data at risk: {}; ",
                    number(n),
                    number(c)
                ),
            },
            number(findings.rules),
            number(findings.not_observable),
        );
    }
    for finding in &findings.top {
        let (class, name) = match finding.severity {
            Severity::High => ("bad", "high"),
            Severity::Medium => ("", "medium"),
            Severity::Low => ("dim", "low"),
        };
        let cost = match finding.cost_ns {
            Some(ns) => format!(" · costs {}", duration(ns)),
            None => String::new(),
        };
        let sites: Vec<String> = finding.code.iter().map(Site::text).collect();
        let code = match sites.as_slice() {
            [] => String::new(),
            sites => format!(
                "<p>In the code: <code>{}</code></p>",
                esc(&sites.join(", "))
            ),
        };
        let _ = writeln!(
            out,
            "<div class=\"finding\"><p><b class=\"{class}\">{name}</b> <b>{}</b><span class=\"dim\">{cost}</span></p>\
             <p>{}</p>{code}<p class=\"dim\">{}</p></div>",
            esc(finding.rule),
            esc(&finding.title),
            esc(&finding.advice),
        );
    }
    if findings.count > 0 || findings.left_out.is_some() {
        let command = shell_words(["fathom", "diagnose", &report.storage.location]);
        let _ = writeln!(
            out,
            "<p class=\"dim\">All of them, with evidence and examples: <code>{}</code></p>",
            esc(&command)
        );
    }
    out.push_str("</section>\n");
}
