//! What the documents state, against what is so.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::tools::project;
use fathom_tests::{Scratch, need_root};

/// Every document, by its path in the project.
fn documents() -> Vec<PathBuf> {
    let listed = must_run(
        "git",
        [
            "-C".as_ref(),
            project().as_os_str(),
            "ls-files".as_ref(),
            "*.md".as_ref(),
        ],
    );
    let listed = String::from_utf8(listed).unwrap();
    let all: Vec<PathBuf> = listed.lines().map(PathBuf::from).collect();
    assert!(all.contains(&PathBuf::from("README.md")) && all.len() > 40);
    all
}

fn read(path: impl AsRef<Path>) -> String {
    let path = project().join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What stands between `before` and `behind` in a file, of which there is one.
fn between<'a>(text: &'a str, before: &str, behind: &str) -> &'a str {
    let (_, rest) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("no {before:?}"));
    rest.split_once(behind)
        .unwrap_or_else(|| panic!("no {behind:?} behind {before:?}"))
        .0
}

#[test]
fn the_readme_asks_for_the_versions_that_are_needed() {
    let readme = read("README.md");
    let rust = between(&read("Cargo.toml"), "\nrust-version = \"", "\"").to_string();
    assert_eq!(between(&readme, " Rust ", " or newer"), rust);
    let versions = read("scripts/versions.sh");
    assert_eq!(
        between(&readme, " clang ", " or newer"),
        between(&versions, "\nmin_clang=", "\n")
    );
    // The oldest kernel is the oldest that the programs are compiled for.
    let kernels = read("crates/probe/build.rs");
    let oldest = between(between(&kernels, "const KERNELS:", ";\n"), "= [", "]");
    let oldest = oldest.rsplit(", ").next().unwrap().trim_matches('"');
    let (major, minor) = oldest.split_at(oldest.len() - 2);
    let wanted = format!("x86-64 Linux {major}.{}", minor.trim_start_matches('0'));
    assert!(readme.contains(&format!("{wanted} or newer")), "{wanted}");
    // Other kernels are those of the tests, but for the newest, which moves on.
    let table = read("scripts/kernels.sh");
    let table = between(&table, "\nkernel_table='\n", "\n'");
    let named = between(&readme, "Every test runs on", "`./do test` runs");
    for line in table.lines().filter(|line| line.contains(" amd64 ")) {
        let name = line.split(' ').next().unwrap();
        assert!(
            name == "newest"
                || named.contains(&format!("{name},"))
                || named.contains(&format!("{name} and")),
            "{name}: {named}"
        );
    }
}

/// The sample of a report counts the rules.
#[test]
fn the_readme_counts_the_rules() {
    let pages = fs::read_dir(project().join("docs/rules")).unwrap();
    let rules = pages
        .filter(|page| page.as_ref().unwrap().file_name() != "README.md")
        .count();
    let readme = read("README.md");
    let line = between(&readme, "\nFindings  ", "\n");
    let numbers: Vec<usize> = line
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    // Of the others one compares contents, two look at requests of applications and three at calls of
    // libraries, which a recording has when they are asked for.
    assert_eq!(numbers, [1, rules - 6], "{line}");
}

/// Anchors of a document, as code hosts make them of its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let headings = text.lines().filter(|line| {
        fenced ^= line.starts_with("```");
        !fenced && line.starts_with('#')
    });
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn links_lead_somewhere() {
    let mut links = 0;
    for document in documents() {
        let text = read(&document);
        for piece in text.split("](").skip(1) {
            let link = piece.split(')').next().unwrap();
            if link.contains("://") || link.starts_with("mailto:") || link.contains([' ', '\n']) {
                continue;
            }
            links += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => document.clone(),
                path => document.parent().unwrap().join(path),
            };
            let full = project().join(&target);
            assert!(full.exists(), "{}: {link}", document.display());
            if !anchor.is_empty() && full.is_file() {
                let known = anchors(&fs::read_to_string(&full).unwrap());
                assert!(
                    known.contains(anchor),
                    "{}: {link}: {known:?}",
                    document.display()
                );
            }
        }
    }
    assert!(links > 100, "{links}");
}

/// Files that the texts name in code, such as `scripts/kernels.sh`.
#[test]
fn files_that_are_named_exist() {
    let mut named = 0;
    for document in [
        "README.md",
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        "docs/reference/kernels.md",
        "docs/explanation/how-it-works.md",
    ] {
        let text = read(document);
        for (index, code) in text.split('`').enumerate() {
            let roots = [
                "bpf/",
                "crates/",
                "scripts/",
                "tests/",
                "web/",
                "docs/",
                "examples/",
                "benches/",
                "fuzz/",
            ];
            let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
            if index % 2 == 1
                && roots.iter().any(|root| code.starts_with(root))
                && code.chars().all(plain)
            {
                named += 1;
                // NAME is what the reader calls it.
                let path = code.split("NAME").next().unwrap();
                assert!(project().join(path).exists(), "{document}: {code}");
            }
        }
    }
    assert!(named > 20, "{named}");
}

#[test]
fn commands_of_do_exist() {
    let help = must_run(project().join("do"), ["help"]);
    let help = String::from_utf8(help).unwrap();
    let usage: BTreeSet<&str> = help
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter_map(|line| line.split(' ').next())
        .filter(|word| !word.is_empty())
        .collect();
    let mut named = 0;
    for document in documents() {
        for piece in read(&document).split("./do ").skip(1) {
            let word: String = piece.chars().take_while(char::is_ascii_lowercase).collect();
            // "./do ..." and "./do` installs".
            if !word.is_empty() {
                named += 1;
                assert!(
                    usage.contains(word.as_str()),
                    "{}: ./do {word}",
                    document.display()
                );
            }
        }
    }
    assert!(named > 10, "{named}");
}

/// Words of a line as a shell sees them, without what it does to their output.
fn words(line: &str) -> Vec<String> {
    let script = format!("printf '%s\\0' {line}");
    let output = Command::new("bash")
        .args(["-fc", &script])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\0').map(String::from).collect()
}

/// `line` up to a comment, a pipe, a redirection or a second command; the texts also put what a
/// command is for two or more blanks behind it.
fn command(line: &str) -> &str {
    let mut quote = None;
    let mut blanks = 0;
    for (at, c) in line.char_indices() {
        blanks = if c == ' ' { blanks + 1 } else { 0 };
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if "|>;&#".contains(c) || blanks == 2 => return &line[..at],
            None => {}
        }
    }
    line
}

/// Every line of the documents that runs fathom is one that fathom understands.
#[test]
fn command_lines_parse() {
    let mut run = 0;
    for document in documents() {
        let text = read(&document);
        let mut lines = text.lines();
        let mut shell = false;
        while let Some(line) = lines.next() {
            if let Some(language) = line.strip_prefix("```") {
                shell = language.starts_with("sh");
            }
            if !shell && !line.starts_with("    ") {
                continue;
            }
            let line = line
                .trim_start()
                .trim_start_matches("sudo ")
                .trim_start_matches("target/release/");
            let Some(rest) = line.strip_prefix("fathom ") else {
                continue;
            };
            let mut rest = rest.to_string();
            // SQL goes on on the next line.
            while rest.ends_with('\\') || rest.matches('"').count() % 2 == 1 {
                let Some(more) = lines.next() else { break };
                rest = format!("{} {}", rest.trim_end_matches('\\'), more.trim());
            }
            let mut args = words(command(&rest));
            // Placeholders stand for any.
            args.retain(|word| !matches!(word.as_str(), "[OPTIONS]" | "..." | "…"));
            let end = args
                .iter()
                .position(|word| word == "--")
                .unwrap_or(args.len());
            // Options are read up to here; then this ends it.
            args.insert(end, "--help".into());
            let output = Command::new(fathom())
                .args(&args)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "{}: fathom {rest}: {said}",
                document.display()
            );
            run += 1;
        }
    }
    assert!(run > 50, "{run}");
}

/// Runs the commands of the tutorial and of the how-to pages: the code blocks that are marked
/// `sh,run`, those of a page one after another in an empty directory.
#[test]
#[ignore = "long"]
fn commands_of_the_guide_run() {
    need_root!();
    let mut pages = vec!["docs/tutorial.md".to_owned()];
    for entry in fs::read_dir(project().join("docs/how-to")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        pages.push(format!("docs/how-to/{name}"));
    }
    let mut failed = Vec::new();
    let mut run = 0;
    for page in &pages {
        let text = read(page);
        let blocks = text.split("```sh,run\n").skip(1);
        let blocks: Vec<&str> = blocks
            .filter_map(|block| block.split("```").next())
            .collect();
        if blocks.is_empty() {
            continue;
        }
        run += blocks.len();
        let scratch = Scratch::new();
        // Like a reader's directory, it can be written only by its owner.
        let dir = scratch.root().join("reader");
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        // Findings and differences are results, not failures. Root needs no sudo. Like sudo, a job in
        // the background passes signals on: it is the program itself.
        let script = format!(
            "set -eu\nsudo() {{ \"$@\"; }}\nfathom() {{\ncase $* in 'agent --check'*) ;; agent*) exec '{0}' \"$@\" ;; esac\n\
             '{0}' \"$@\" || {{ status=$?; \
             case $1:$status in diagnose:1 | diff:1 | doctor:1) ;; *) return $status ;; esac; }}; }}\n{1}",
            fathom().display(),
            blocks.concat()
        );
        let output = Command::new("bash")
            .args(["-c", &script])
            .current_dir(&dir)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            failed.push(format!("{page}: {}\n{said}", output.status));
        }
    }
    assert!(run > 30, "{run}");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The list of examples has each of them.
#[test]
fn every_example_is_listed() {
    let list = read("examples/README.md");
    for entry in fs::read_dir(project().join("examples")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            assert!(list.contains(&format!("]({name}/README.md)")), "{name}");
        }
    }
}
