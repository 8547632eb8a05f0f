//! The page's types of what the server answers, made of the Rust types.

use std::path::Path;

use fathom_model::layers::{Layer, Recorded};
use ts_rs::TS;

use crate::api::types;
use crate::{error, filter, share};

const HEAD: &str =
    "// Generated from the Rust types of fathom: FATHOM_BLESS=1 ./do test regenerates it.\n";

fn answers() -> String {
    let mut all = vec![
        error::Problem::decl(),
        error::ErrorAnswer::decl(),
        filter::AnyOrNone::decl(),
        filter::Errors::decl(),
        filter::Filter::decl(),
    ];
    all.extend(types::declarations());
    all.extend([share::Question::decl(), share::ShareRequest::decl()]);
    let row = "\n/** A row of a table: its columns, with times since the start of the recording. */\n\
               export type Row = Record<string, string | number | boolean | null | number[]>;\n";
    file(row, all)
}

/// The problems, as in `fathom diagnose --format json`.
fn diagnosis() -> String {
    use fathom_diagnose::{
        Activity, Also, Confidence, Diagnosis, Evidence, Example, Finding, Group, More,
        NotObservable, Part, Severity, Site, Subject, Summary,
    };
    file(
        "",
        vec![
            Severity::decl(),
            Group::decl(),
            Confidence::decl(),
            Subject::decl(),
            Evidence::decl(),
            Example::decl(),
            Site::decl(),
            Also::decl(),
            Finding::decl(),
            NotObservable::decl(),
            More::decl(),
            Activity::decl(),
            Part::decl(),
            Summary::decl(),
            Diagnosis::decl(),
        ],
    )
}

/// Where the time went, as in `fathom why --format json`.
fn story() -> String {
    use fathom_why::{
        Ahead, Block, Cause, Facts, Group, Link, Piece, Sentence, Share, Single, Step, Story,
    };
    file(
        "\nimport type { Activity } from \"./diagnosis\";\n",
        vec![
            Link::decl(),
            Piece::decl(),
            Sentence::decl(),
            Cause::decl(),
            Share::decl(),
            Group::decl(),
            Block::decl(),
            Ahead::decl(),
            Single::decl(),
            Facts::decl(),
            Step::decl(),
            Story::decl(),
        ],
    )
}

/// The hosts of a set, as in `fathom set --format json`.
fn set() -> String {
    use fathom_set::{MemberSummary, Summary, Traffic};
    let all = vec![
        fathom_model::set::Method::decl(),
        MemberSummary::decl(),
        Traffic::decl(),
        Summary::decl(),
    ];
    file("", all)
}

/// The changes, as in `fathom diff --format json`.
fn comparison() -> String {
    use fathom_diff::{
        Change, Diff, Figure, FindingChange, Guard, Headline, Method, Metric, Outcome, Row,
        SessionRef, Side, Status, Tables, Verdict,
    };
    file(
        "\nimport type { Group, Severity } from \"./diagnosis\";\n",
        vec![
            Outcome::decl(),
            SessionRef::decl(),
            Side::decl(),
            Method::decl(),
            Metric::decl(),
            Verdict::decl(),
            Figure::decl(),
            Status::decl(),
            Row::decl(),
            Tables::decl(),
            Change::decl(),
            FindingChange::decl(),
            Guard::decl(),
            Headline::decl(),
            Diff::decl(),
        ],
    )
}

/// The layers, as `fathom_model::layers` has them.
fn layers() -> String {
    let mut rows = String::new();
    for layer in Layer::ALL {
        let by = match layer.recorded() {
            Recorded::With(other) => other.name(),
            _ => layer.name(),
        };
        let (name, meaning) = (layer.name(), layer.meaning());
        rows.push_str(&format!(
            "\t{{ name: {name:?}, by: {by:?}, meaning: {meaning:?} }},\n"
        ));
    }
    format!(
        "{HEAD}\n/** The layers, from the program down to the device, then what takes the CPU away; `by`: recorded with. */\n\
         export const LAYERS: readonly {{ name: string; by: string; meaning: string }}[] = [\n{rows}];\n"
    )
}

/// The effects of calls on stored data, as in `fathom_model::kind`.
fn purposes() -> String {
    use fathom_model::kind::Purpose;
    let names: Vec<String> = Purpose::ALL
        .iter()
        .map(|p| format!("{:?}", p.name()))
        .collect();
    let mut rows = String::new();
    for purpose in Purpose::ALL.into_iter().filter(|p| *p != Purpose::Other) {
        let calls: Vec<&str> = fathom_model::syscalls::SYSCALLS
            .iter()
            .filter(|s| s.kind.purpose() == purpose)
            .map(|s| s.name)
            .collect();
        rows.push_str(&format!("\t{}: {:?},\n", purpose.name(), calls.join(" ")));
    }
    format!(
        "{HEAD}\n/** What a call does to stored data. */\nexport type Purpose = {};\n\
         \n/** The calls of each purpose, separated by spaces; all others are \"other\". */\n\
         export const CALLS: Readonly<Record<Exclude<Purpose, \"other\">, string>> = {{\n{rows}}};\n",
        names.join(" | ")
    )
}

/// A file of declarations, with `bigint`s as the numbers that JSON has.
fn file(begin: &str, declarations: Vec<String>) -> String {
    let mut out = format!("{HEAD}{begin}");
    for declaration in declarations {
        let declaration = declaration.replace("bigint", "number");
        out.push_str(&format!("\nexport {}\n", tidy(&declaration)));
    }
    out
}

/// Comments of one line on one line, members on lines of their own, indented.
fn tidy(declaration: &str) -> String {
    let lines: Vec<&str> = declaration.lines().map(str::trim).collect();
    let mut out: Vec<String> = Vec::new();
    let mut rest = lines.as_slice();
    while let Some((line, more)) = rest.split_first() {
        rest = more;
        let line = match (*line, more) {
            ("/**", [text, "*/", more @ ..]) => {
                rest = more;
                format!("/** {} */", text.trim_start_matches("* "))
            }
            (line, _) if line.starts_with('*') => format!(" {line}"),
            (line, _) => line.to_string(),
        };
        let (line, end) = match line.strip_suffix(", };") {
            Some(line) => (format!("{line},"), Some("};")),
            None => (line, None),
        };
        let indent = if out.is_empty() { "" } else { "  " };
        out.push(format!("{indent}{line}"));
        out.extend(end.map(str::to_string));
    }
    out.join("\n")
}

/// Compares a file of the page with what it should be; writes it when that is asked for.
fn check(name: &str, made: &str) {
    assert!(!made.contains("bigint"), "{name}");
    fathom_testkit::expect_file(Path::new("web/src/api").join(name), made);
}

#[test]
fn the_page_has_the_layers() {
    check("layers.ts", &layers());
}

#[test]
fn the_page_has_the_purposes_of_calls() {
    check("calls.ts", &purposes());
}

#[test]
fn the_page_has_the_words_for_the_numbers_of_findings() {
    let rows = fathom_diagnose::evidence_phrases().iter();
    let rows: String = rows
        .map(|(name, phrase)| match name.contains('/') {
            true => format!("\t{name:?}: {phrase:?},\n"),
            false => format!("\t{name}: {phrase:?},\n"),
        })
        .collect();
    let rules = fathom_diagnose::catalog();
    let rules: String = rules
        .iter()
        .map(|rule| format!("\t{:?},\n", rule.id))
        .collect();
    let made = format!(
        "{HEAD}\n/** What the numbers of findings say, by rule/name or name; the number takes the place of {{}}. */\n\
         export const PHRASES: Readonly<Record<string, string>> = {{\n{rows}}};\n\
         \n/** The rules that have them: a user's rule may mean another thing by a name. */\n\
         export const RULES: ReadonlySet<string> = new Set([\n{rules}]);\n"
    );
    check("evidence.ts", &made);
}

#[test]
fn the_page_has_the_types_of_the_answers() {
    let made = answers();
    assert!(made.contains("type TilesMeta"));
    check("types.ts", &made);
}

#[test]
fn the_page_has_the_types_of_diagnoses() {
    let made = diagnosis();
    // Fields that may be missing in an answer must be optional in the page's types, too.
    assert!(made.contains("function?: string") && made.contains("code?: Array<Site>"));
    check("diagnosis.ts", &made);
}

#[test]
fn the_page_has_the_types_of_stories() {
    let made = story();
    assert!(made.contains("type Story"));
    check("why.ts", &made);
}

#[test]
fn the_page_has_the_types_of_sets() {
    let made = set();
    assert!(made.contains("type Summary"));
    check("set.ts", &made);
}

#[test]
fn the_page_has_the_types_of_comparisons() {
    let made = comparison();
    assert!(made.contains("on?: string") && made.contains("severity: [Severity | null"));
    check("comparison.ts", &made);
}
