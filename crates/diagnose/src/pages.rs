//! The documentation pages of the rules, generated from their `RuleInfo`.

use std::fmt::Write as _;

use crate::aliases::aliases;
use crate::finding::Group;
use crate::rule::{Input, RuleInfo};

const GENERATED: &str =
    "<!-- Generated from crates/diagnose/src/rules: FATHOM_BLESS=1 ./do test regenerates it. -->";

/// Pages of the documentation: file name and text, the list of all rules first.
pub fn pages() -> Vec<(String, String)> {
    let rules = crate::rules::catalog();
    let mut pages = vec![("README.md".to_owned(), index(&rules))];
    pages.extend(
        rules
            .iter()
            .map(|info| (format!("{}.md", info.id), page(info))),
    );
    pages
}

fn index(rules: &[&RuleInfo]) -> String {
    let mut text = format!(
        "# Rules of the diagnosis\n\n{GENERATED}\n\n\
         You can add rules of your own: [Write a rule](../how-to/write-a-rule.md).\n"
    );
    for (group, title) in [
        (
            Group::Correctness,
            "Correctness: data can be lost, wrong, or never read",
        ),
        (Group::Performance, "Performance: avoidable time"),
    ] {
        let _ = write!(
            text,
            "\n## {title}\n\n| Rule | What it finds |\n|---|---|\n"
        );
        for info in rules.iter().filter(|info| info.group == group) {
            let _ = writeln!(text, "| [`{0}`]({0}.md) | {1} |", info.id, info.name);
        }
    }
    text
}

fn page(info: &RuleInfo) -> String {
    let group = match info.group {
        Group::Correctness => "Correctness",
        Group::Performance => "Performance",
    };
    let needs: Vec<&str> = info.needs.iter().map(|input| need(*input)).collect();
    let former: String = aliases(info.id)
        .iter()
        .map(|id| format!(" Formerly `{id}`."))
        .collect();
    let mut text = format!(
        "# {}: `{}`\n\n{GENERATED}\n\n{group}. Needs {}.{former}\n\n{}\n\n## When it fires\n\n{}\n",
        info.name,
        info.id,
        needs.join(", "),
        info.what,
        info.when,
    );
    if info.group == Group::Performance {
        let unless = match info.needs.contains(&Input::Spans) {
            true => ", and less than 10 % of the time of its requests,",
            false => "",
        };
        let _ = write!(
            text,
            "\nA finding that costs less than 1 % of the recorded time{unless} is not reported. Severity is medium from 3 % on, and high from 10 % on.\n",
        );
    }
    if !info.cost.is_empty() {
        let _ = write!(text, "\n## Cost\n\nEstimate: {}.\n", info.cost);
    }
    let _ = write!(text, "\n## What to do\n\n{}\n", info.advice);
    if !info.not_when.is_empty() {
        let _ = write!(text, "\n{}\n", info.not_when);
    }
    let _ = write!(
        text,
        "\n## Example\n\n```\n{}\n```\n\nInstead:\n\n```\n{}\n```\n\n## Source\n\n{}.\n",
        info.bad,
        info.good,
        info.reference.trim_end_matches('.'),
    );
    text
}

fn need(input: Input) -> &'static str {
    match input {
        Input::Calls => "calls (always recorded)",
        Input::Content => "hashes of content (`--content hash`)",
        Input::Cache => "lookups in the page cache (`--layers pagecache`)",
        Input::Faults => "page faults (`--layers pagecache`)",
        Input::Block => "block requests (`--layers block`)",
        Input::Waits => "waits (`--layers sched`)",
        Input::Interrupts => "interrupts (`--layers irq`)",
        Input::Spans => "requests of applications (`--spans`, or imported spans)",
        Input::Stdio => "calls of the C library's streams (`--library stdio`)",
        Input::Slices => "the time of requests by layer (not while a recording is in progress)",
        Input::MpiIo => "calls of MPI-IO (`--library mpi-io`)",
    }
}
