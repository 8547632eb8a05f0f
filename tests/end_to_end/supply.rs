//! Where the code of others comes from, and under which terms: `cargo deny check licenses bans
//! sources` in a few lines. cargo-deny 0.18 would be 363 crates to compile, more than fathom with
//! all that it depends on; what these checks need is in the metadata that cargo prints.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use fathom_tests::tools::project;
use serde_json::Value;
use spdx::{Expression, ParseMode};

/// Licences under which code may be linked with fathom's: permissive ones, which ask for their
/// text to be kept at most.
const LICENCES: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];
/// Crates with other terms, and why they are fine.
const EXCEPTIONS: [(&str, &str); 2] = [
    // Certificates, as data, of what DuckDB's build script would download with. It is not run.
    ("webpki-roots", "CDLA-Permissive-2.0"),
    // The same for TLS on Android, which is not built.
    ("webpki-root-certs", "CDLA-Permissive-2.0"),
];
/// Crates of which one version only may be there: types cross from one crate to another, or a
/// library of C that can be linked once.
const ONCE: [&str; 13] = [
    "arrow",
    "arrow-array",
    "arrow-schema",
    "axum",
    "clap",
    "duckdb",
    "hyper",
    "libbpf-sys",
    "libduckdb-sys",
    "parquet",
    "serde",
    "tokio",
    "zstd-sys",
];
/// TLS is for `fathom ship`, by rustls with ring: no library of the system, and nothing that needs cmake.
const NOT_LINKED: [&str; 6] = [
    "aws-lc-rs",
    "aws-lc-sys",
    "curl",
    "native-tls",
    "openssl",
    "openssl-sys",
];
/// The program that only records has no TLS at all. Its agent opens connections, to the collector in its
/// configuration.
const NOT_IN_THE_RECORDER: [&str; 5] = ["fathom-ship", "object_store", "reqwest", "ring", "rustls"];
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(project())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("")
}

/// Why a package may not be used; `None` when it may.
fn refused(name: &str, licence: &str) -> Option<String> {
    if EXCEPTIONS.contains(&(name, licence)) {
        return None;
    }
    // Old manifests have `MIT/Apache-2.0`.
    let terms = match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(terms) => terms,
        Err(error) => return Some(format!("{name}: licence {licence:?}: {error}")),
    };
    let fine = terms.evaluate(|term| LICENCES.contains(&term.to_string().as_str()));
    (!fine).then(|| format!("{name}: licence {licence} is not among those that are allowed"))
}

#[test]
fn licences_are_judged() {
    assert_eq!(refused("a", "MIT OR GPL-3.0-only"), None);
    assert_eq!(refused("a", "(MIT OR Apache-2.0) AND Unicode-3.0"), None);
    assert_eq!(refused("a", "Apache-2.0 / MIT"), None);
    for licence in [
        "GPL-3.0-only",
        "MIT AND GPL-2.0-only",
        "",
        "Fair",
        "CDLA-Permissive-2.0",
    ] {
        assert!(refused("a", licence).is_some(), "{licence}");
    }
}

#[test]
fn crates_have_terms_and_sources_that_are_allowed() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 200);
    let root = text(&metadata, "workspace_root");
    let mut wrong = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let (name, version) = (text(package, "name"), text(package, "version"));
        versions.entry(name).or_default().insert(version);
        wrong.extend(refused(name, text(package, "license")));
        match package["source"].as_str() {
            // A part of the project.
            None if text(package, "manifest_path").starts_with(root) => {}
            Some(REGISTRY) => {}
            other => wrong.push(format!("{name} {version} comes from {other:?}")),
        }
    }
    for name in ONCE {
        let found = versions.get(name).map_or(0, BTreeSet::len);
        if found != 1 {
            wrong.push(format!(
                "{found} versions of {name}: {:?}",
                versions.get(name)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What cargo downloads it compares with the hash in the lock file; so does npm.
#[test]
fn everything_locked_has_a_hash() {
    let lock = fs::read_to_string(project().join("Cargo.lock")).unwrap();
    let mut locked = 0;
    for package in lock.split("[[package]]").skip(1) {
        let line = |key: &str| {
            let mut lines = package.lines();
            lines
                .find_map(|line| line.strip_prefix(key))
                .map(|value| value.trim_matches('"'))
        };
        if line("source = ").is_some() {
            locked += 1;
            assert_eq!(line("checksum = ").map(str::len), Some(64), "{package}");
        }
    }
    assert!(locked > 200, "{locked}");
    let lock = fs::read(project().join("web/package-lock.json")).unwrap();
    let lock: Value = serde_json::from_slice(&lock).unwrap();
    let packages = lock["packages"].as_object().unwrap();
    assert!(packages.len() > 20);
    for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
        let hash = text(package, "integrity");
        assert!(
            hash.starts_with("sha512-") && hash.len() > 80,
            "{name}: {hash}"
        );
    }
}

/// What the program is linked with: neither what builds it nor what tests it. `cargo metadata` does
/// not separate their features.
fn linked(features: &[&str]) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "-p", "fathom-cli", "-e", "normal"])
        .args(["--prefix", "none", "--format", "{p}"])
        .args(features)
        .current_dir(project())
        .output()
        .unwrap();
    assert!(output.status.success());
    let tree = String::from_utf8(output.stdout).unwrap();
    let linked: BTreeSet<String> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect();
    for name in ["libbpf-sys", "fathom-agent", "axum"] {
        assert!(linked.contains(name), "{name}");
    }
    assert!(linked.len() > 100, "{}", linked.len());
    linked
}

#[test]
fn the_program_has_no_tls_of_the_system() {
    let all = linked(&[]);
    let wrong = NOT_LINKED.iter().filter(|name| all.contains(**name));
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&&str>::new());
    assert!(NOT_IN_THE_RECORDER.iter().all(|name| all.contains(*name)));
    let recorder = linked(&["--no-default-features"]);
    let forbidden = NOT_LINKED.iter().chain(&NOT_IN_THE_RECORDER);
    let wrong = forbidden.filter(|name| recorder.contains(**name));
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&&str>::new());
}
