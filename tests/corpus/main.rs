//! What `fathom diagnose` says of programs of which it is known what is wrong with them:
//! those of `tests/corpus`, and everyday programs that are healthy.
//!
//! A test of its own, as many of the findings are about time, which other tests would take.
// A step that fails is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use fathom_tests::environment::must_run;
use fathom_tests::tools::project;
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, tools};

/// A mount namespace of its own, which takes what is mounted with it when it ends.
const APART: [&str; 4] = ["unshare", "--mount", "--propagation", "private"];

/// Makes a file system, prepares the program there and becomes the recorder. With `full`
/// the device has room for less than it says, so that writing to it fails in the end.
const PREPARE: &str = r#"set -e
image=$1 mounted=$2 full=$3 setup=$4
shift 4
if [ "$full" = full ]; then
    mount -t tmpfs -o size=24m none "$mounted"
    image=$mounted/image mounted=$mounted/mounted
    truncate -s 200M "$image"
    mkfs.ext2 -qF "$image"
    mkdir "$mounted"
    mount -t ext4 -o loop "$image" "$mounted"
else
    mount -o loop "$image" "$mounted"
fi
cd "$mounted"
eval "$setup"
exec "$@"
"#;

/// What is true of a program.
struct Label {
    name: String,
    /// Rules that must find something.
    wanted: BTreeSet<String>,
    /// Rules that may, as it is true of the program on some machines.
    allowed: BTreeSet<String>,
}

/// What was found in a program.
struct Outcome {
    name: String,
    findings: BTreeMap<String, BTreeMap<String, f64>>,
    /// What the query of the rule's promise counts.
    counted: Option<f64>,
}

/// What a rule promises that its advice saves.
struct Promise {
    rule: String,
    evidence: String,
    share: f64,
    what: String,
    query: String,
}

fn corpus() -> PathBuf {
    project().join("tests/corpus")
}

/// Lines of a table without comments, their fields apart.
fn table(name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(corpus().join(name)).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            line.split(" | ")
                .map(|field| field.trim().to_owned())
                .collect()
        })
        .collect()
}

fn labels() -> Vec<Label> {
    let label = |line: Vec<String>| {
        let (maybe, sure): (Vec<&str>, Vec<&str>) = line[1]
            .split_whitespace()
            .filter(|rule| *rule != "-")
            .partition(|rule| rule.ends_with('?'));
        Label {
            name: line[0].clone(),
            wanted: sure.into_iter().map(str::to_owned).collect(),
            allowed: maybe
                .into_iter()
                .map(|r| r.trim_end_matches('?').to_owned())
                .collect(),
        }
    };
    let mut labels: Vec<Label> = table("labels.txt").into_iter().map(label).collect();
    let of_all = labels.iter().position(|label| label.name == "*").unwrap();
    let of_all = labels.remove(of_all).allowed;
    for label in &mut labels {
        label.allowed.extend(of_all.iter().cloned());
    }
    labels
}

fn promises() -> Vec<Promise> {
    let promise = |line: Vec<String>| {
        let (over, under) = line[2].split_once('/').unwrap_or((&line[2], "1"));
        Promise {
            rule: line[0].clone(),
            evidence: line[1].clone(),
            share: over.parse::<f64>().unwrap() / under.parse::<f64>().unwrap(),
            what: line[3].clone(),
            query: line[4].clone(),
        }
    };
    table("promises.txt").into_iter().map(promise).collect()
}

/// The interpreter itself: `python3` may be a script that looks for one.
fn python() -> String {
    let out = must_run("python3", ["-c", "import sys; print(sys.executable)"]);
    String::from_utf8(out).unwrap().trim().to_owned()
}

/// What the rule of a program needs beyond calls, layers and content.
fn options_of(name: &str) -> &'static [&'static str] {
    match name.split('/').next().unwrap() {
        "unbuffered-stdio" | "stdio-read-amplification" => &["--library", "stdio"],
        "queries-in-a-loop" | "slow-request" => &["--spans", "http,redis"],
        _ => &[],
    }
}

/// Records a command on a file system of its own.
fn record(
    scratch: &Scratch,
    full: bool,
    setup: &str,
    options: &[&'static str],
    command: &[&str],
) -> Recording {
    let image = scratch.root().join("image");
    let mounted = scratch.root().join("mounted");
    fs::create_dir(&mounted).unwrap();
    if !full {
        File::create(&image).unwrap().set_len(256 << 20).unwrap();
        let options = [
            "-qF",
            "-b",
            "4096",
            "-E",
            "lazy_itable_init=0,lazy_journal_init=0,nodiscard",
        ];
        must_run(
            "mkfs.ext4",
            options.iter().map(AsRef::as_ref).chain([image.as_os_str()]),
        );
    }
    let words = [
        "sh".as_ref(),
        "-c".as_ref(),
        PREPARE.as_ref(),
        "prepare".as_ref(),
        image.as_os_str(),
        mounted.as_os_str(),
        if full { "full" } else { "-" }.as_ref(),
        setup.as_ref(),
    ];
    Record::new(scratch)
        .by(APART.iter().map(AsRef::as_ref).chain(words))
        .options(["--layers", "all", "--content", "hash"])
        .options(options.iter().copied())
        .command(command)
        .run()
}

fn run(label: &Label, python: &str, promises: &[Promise]) -> Outcome {
    let scratch = Scratch::new();
    let recording = if let Some(script) = label.name.strip_prefix("real/") {
        let script = corpus().join("real").join(format!("{script}.sh"));
        let script = script.to_str().unwrap();
        record(
            &scratch,
            false,
            &format!("sh -e {script} setup"),
            &[],
            &["sh", "-e", script, "run"],
        )
    } else {
        let full = label.name.starts_with("sync-error-ignored/");
        let corpus = corpus();
        let program = [
            python,
            "-S",
            "-E",
            "-B",
            corpus.to_str().unwrap(),
            &label.name,
        ];
        let start = program.join(" ");
        let setup = format!("{start} setup\n{start} helper &");
        // From its first call on, what else runs on the machine is not its matter.
        let first = ["nice", "-n", "-15"].into_iter();
        let command: Vec<&str> = first.chain(program).chain(["run"]).collect();
        record(&scratch, full, &setup, options_of(&label.name), &command)
    };
    assert!(
        recording.status.success(),
        "{}: {}",
        label.name,
        recording.stderr
    );
    let session = recording.session.as_os_str();
    let said = tools::run([
        "diagnose".as_ref(),
        "--format".as_ref(),
        "json".as_ref(),
        session,
    ]);
    let json: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap_or_else(|e| {
        panic!(
            "{}: {e}: {}",
            label.name,
            String::from_utf8_lossy(&said.stderr)
        )
    });
    // Requests and library calls are recorded of some programs only.
    let unseen = json["not_observable"].as_array().unwrap().iter();
    let asked_for = |reason: &str| reason.contains("--spans") || reason.contains("--library");
    assert!(
        unseen
            .map(|of| of["reason"].as_str().unwrap())
            .all(asked_for),
        "{}: {json}",
        label.name
    );
    let mut findings: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for finding in json["findings"].as_array().unwrap() {
        let sums = findings
            .entry(finding["rule"].as_str().unwrap().to_owned())
            .or_default();
        for evidence in finding["evidence"].as_array().unwrap() {
            let value = evidence["value"].as_f64().unwrap();
            *sums
                .entry(evidence["name"].as_str().unwrap().to_owned())
                .or_default() += value;
        }
        // About the same calls, so found as well.
        for also in finding["also"].as_array().unwrap() {
            let rule = also["rule"].as_str().unwrap();
            findings.entry(rule.to_owned()).or_default();
        }
    }
    let of_pair = |p: &&Promise| {
        [format!("{}/bad", p.rule), format!("{}/good", p.rule)].contains(&label.name)
    };
    let counted = promises
        .iter()
        .find(of_pair)
        .map(|p| recording.number(&p.query) as f64);
    Outcome {
        name: label.name.clone(),
        findings,
        counted,
    }
}

/// All programs, one after the other: some keep every processor busy, or all interrupts
/// away from one.
fn run_all(labels: &[Label], promises: &[Promise]) -> Vec<Outcome> {
    let python = python();
    labels
        .iter()
        .map(|label| run(label, &python, promises))
        .collect()
}

/// Findings of a rule: those that had to be and were, those that had to be, and those
/// that are not true.
#[derive(Default)]
struct Score {
    found: usize,
    wanted: usize,
    false_ones: usize,
    programs: BTreeSet<String>,
}

/// Adds the findings of a run to the scores; what of them is wrong.
fn add(
    scores: &mut BTreeMap<String, Score>,
    labels: &[Label],
    outcomes: &[Outcome],
) -> Vec<String> {
    let mut wrong = Vec::new();
    for label in labels {
        let outcome = outcomes
            .iter()
            .find(|o| o.name == label.name)
            .expect("it ran");
        let rule = label.name.split('/').next().unwrap();
        if rule != "real" {
            let score = scores.entry(rule.to_owned()).or_default();
            score.programs.insert(label.name.clone());
        }
        for rule in &label.wanted {
            let score = scores.entry(rule.clone()).or_default();
            score.wanted += 1;
            if outcome.findings.contains_key(rule) {
                score.found += 1;
            } else {
                wrong.push(format!("{}: {rule} is silent", label.name));
            }
        }
        for rule in outcome.findings.keys() {
            if !label.wanted.contains(rule) && !label.allowed.contains(rule) {
                scores.entry(rule.clone()).or_default().false_ones += 1;
                wrong.push(format!(
                    "{}: {rule} is not true: {:?}",
                    label.name, outcome.findings[rule]
                ));
            }
        }
    }
    wrong
}

/// A number of the evidence, or sums and differences of several.
fn evaluate(expression: &str, evidence: &BTreeMap<String, f64>) -> f64 {
    let marked = expression.replace('-', "+-");
    let value = |term: &str| match term.strip_prefix('-') {
        Some(name) => -evidence.get(name).copied().unwrap_or(0.0),
        None => evidence.get(term).copied().unwrap_or(0.0),
    };
    marked.split('+').map(value).sum()
}

/// Advice that does not save what its rule promises; half of it is enough.
fn broken(promises: &[Promise], outcomes: &[Outcome]) -> Vec<String> {
    let mut broken = Vec::new();
    for promise in promises {
        let of = |kind: &str| {
            let name = format!("{}/{kind}", promise.rule);
            outcomes.iter().find(|o| o.name == name)
        };
        let (Some(bad), Some(good)) = (of("bad"), of("good")) else {
            continue;
        };
        // One that is shown under another finding has no evidence of its own.
        let Some(evidence) = bad.findings.get(&promise.rule).filter(|e| !e.is_empty()) else {
            continue;
        };
        let promised = evaluate(&promise.evidence, evidence) * promise.share;
        let saved = bad.counted.unwrap() - good.counted.unwrap();
        println!(
            "{}: {saved:.0} of {promised:.0} {} saved, {:.0} before",
            promise.rule,
            promise.what,
            bad.counted.unwrap()
        );
        if promised <= 0.0 || saved < promised / 2.0 {
            broken.push(format!(
                "{}: the advice saves {saved} of {promised} {}",
                promise.rule, promise.what
            ));
        }
    }
    broken
}

const GENERATED: &str = "<!-- The tables are generated by the test diagnosis_corpus: FATHOM_BLESS=1 regenerates them. -->";

/// The part of `docs/diagnosis.md` from the mark on.
fn tables(
    labels: &[Label],
    runs: usize,
    scores: &BTreeMap<String, Score>,
    promises: &[Promise],
) -> String {
    let real = labels
        .iter()
        .filter(|l| l.name.starts_with("real/"))
        .count();
    let mut text = format!(
        "{GENERATED}\n\n## Recall and precision\n\nOver {} small programs and {real} recordings of everyday programs, {runs} runs of all. \
         Recall is the part of the programs with a problem in which its rule found it, precision the part of a rule's findings \
         that are true.\n\n| Rule | Own programs | Recall | Precision |\n|---|---|---|---|\n",
        labels.len() - real,
    );
    for (rule, score) in scores {
        let of = |part: usize, whole: usize| match whole {
            0 => "-".to_owned(),
            _ => format!("{:.2} ({part} of {whole})", part as f64 / whole as f64),
        };
        let said = score.found + score.false_ones;
        let _ = writeln!(
            text,
            "| [`{rule}`](rules/{rule}.md) | {} | {} | {} |",
            score.programs.len(),
            of(score.found, score.wanted),
            of(score.found, said),
        );
    }
    text.push_str(
        "\n## What the advice saves\n\nFor each rule in this table the program with the problem is compared with one that follows the advice and does the same. It must save \
         half or more of the finding's promise, counted in calls, bytes, or requests, because time depends on the machine.\n\n\
         | Rule | Promised | Counted |\n|---|---|---|\n",
    );
    for promise in promises {
        let share = match promise.share {
            1.0 => String::new(),
            s => format!(" × {s}"),
        };
        let _ = writeln!(
            text,
            "| `{}` | {}{share} | {} |",
            promise.rule, promise.evidence, promise.what
        );
    }
    text
}

/// Writes what came of the runs into the page, good or bad.
fn write_page(path: &Path, tables: &str) {
    let page = fs::read_to_string(path).unwrap();
    let mark = page
        .find(GENERATED)
        .expect("the page has a mark for its tables");
    fs::write(path, format!("{}{tables}", &page[..mark])).unwrap();
}

/// How often everything is run: `FATHOM_CORPUS_RUNS`, once without it.
fn runs() -> usize {
    let runs = std::env::var("FATHOM_CORPUS_RUNS");
    runs.map_or(1, |n| n.parse().expect("FATHOM_CORPUS_RUNS is a number"))
}

#[test]
fn findings_are_those_that_are_known_to_be_true() {
    need_root!();
    need_program!("unshare", "mkfs.ext4", "mkfs.ext2", "python3");
    // Some of the findings depend on what else the machine does.
    let Ok(only) = std::env::var("FATHOM_CORPUS") else {
        fathom_tests::skip("needs a quiet machine: FATHOM_CORPUS= runs it");
        return;
    };
    let missing = |label: &Label| {
        let Some(script) = label.name.strip_prefix("real/") else {
            return false;
        };
        let text = fs::read_to_string(corpus().join("real").join(format!("{script}.sh"))).unwrap();
        let needs = text
            .lines()
            .find_map(|line| line.strip_prefix("# needs: "))
            .unwrap_or("");
        needs
            .split_whitespace()
            .any(|program| !fathom_tests::environment::installed(program))
    };
    let all = labels();
    let labels: Vec<Label> = labels()
        .into_iter()
        .filter(|label| label.name.starts_with(&only) && !missing(label))
        .collect();
    let promises = promises();
    let (mut scores, mut wrong) = (BTreeMap::new(), Vec::new());
    let runs = runs();
    for run in 1..=runs {
        let outcomes = run_all(&labels, &promises);
        let mut of_run = add(&mut scores, &labels, &outcomes);
        of_run.extend(broken(&promises, &outcomes));
        wrong.extend(of_run.into_iter().map(|what| format!("run {run}: {what}")));
    }
    // Without some of the programs the tables are others.
    if labels.len() == all.len() && fathom_testkit::blesses() {
        let tables = tables(&labels, runs, &scores, &promises);
        write_page(&project().join("docs/diagnosis.md"), &tables);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
