//! `fathom record --stacks`: findings point into the source.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_tests::environment::must_run;
use fathom_tests::tools;
use fathom_tests::{Record, Recording, Scratch, need_program, need_root};
use serde_json::Value;

/// Makes small records durable one by one, or writes them through the C library without a buffer.
/// The lines that are to be found end with remarks.
const SOURCE: &str = r#"#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char bytes[64];

__attribute__((noinline)) static long records(int fd)
{
	long sum = 0;
	for (int i = 0; i < 200; i++) {
		sum += write(fd, bytes, sizeof bytes);
		sum += fsync(fd); // records
	}
	return sum;
}

__attribute__((noinline)) static long lines(FILE *file)
{
	long sum = 0;
	for (int i = 0; i < 200; i++) {
		sum += fwrite(bytes, 1, sizeof bytes, file); // lines
	}
	return sum;
}

int main(int argc, char **argv)
{
	long sum;
	memset(bytes, 'x', sizeof bytes);
	if (!strcmp(argv[1], "records")) {
		sum = records(open(argv[2], O_WRONLY | O_CREAT, 0644));
	} else {
		FILE *file = fopen(argv[2], "w");
		setvbuf(file, NULL, _IONBF, 0);
		sum = lines(file);
	}
	/* Long enough for the recorder to look at the process. */
	usleep(300000);
	return argc != 3 || sum != 200 * 64;
}
"#;

/// Line of the source that ends with a remark.
fn line_of(remark: &str) -> i64 {
    let line = SOURCE.lines().position(|line| line.ends_with(remark));
    line.unwrap() as i64 + 1
}

fn compile(dir: &Path, name: &str, options: &[&str]) -> PathBuf {
    let (source, program) = (dir.join("small.c"), dir.join(name));
    fs::write(&source, SOURCE).unwrap();
    let files = ["-o".as_ref(), program.as_os_str(), source.as_os_str()];
    must_run("cc", options.iter().map(AsRef::as_ref).chain(files));
    program
}

fn record(scratch: &Scratch, program: &Path, mode: &str, options: &[&str]) -> Recording {
    let out = scratch.work().join("out");
    let command = [program.as_os_str(), mode.as_ref(), out.as_os_str()];
    Record::new(scratch)
        .options(options)
        .command(command)
        .run()
        .must_exit(0)
}

fn diagnose(recording: &Recording, format: &str) -> Vec<u8> {
    let words = ["diagnose", "--format", format].map(AsRef::as_ref);
    let session = [recording.session.as_os_str()];
    tools::run(words.into_iter().chain(session)).stdout
}

fn sync_storm(recording: &Recording) -> Value {
    let value: Value = serde_json::from_slice(&diagnose(recording, "json")).unwrap();
    let findings = value["findings"].as_array().unwrap();
    let found = findings.iter().find(|f| f["rule"] == "sync-storm");
    found.unwrap_or_else(|| panic!("{value}")).clone()
}

/// Calls whose stack has the function at its line, in a recording of which nothing was lost.
fn calls_from(recording: &Recording, syscall: &str, function: &str, line: i64) -> i64 {
    recording.number(&format!(
        "SELECT count(DISTINCT rid) FROM syscalls JOIN stacks USING (rid) JOIN frames USING (stack_id) \
         WHERE syscall = '{syscall}' AND function = '{function}' AND coalesce(line, 0) = {line}"
    ))
}

#[test]
fn a_finding_names_function_and_line() {
    need_root!();
    need_program!("cc");
    for options in [
        ["-g", "-O1", "-fno-omit-frame-pointer"],
        ["-g", "-O2", "-fomit-frame-pointer"],
    ] {
        let scratch = Scratch::new();
        let program = compile(scratch.root(), "small", &options);
        let recording = record(&scratch, &program, "records", &["--stacks"]);
        let line = line_of("records");
        let finding = sync_storm(&recording);
        let code = &finding["code"][0];
        assert_eq!(code["function"], "records", "{options:?}: {finding}");
        let source = code["source"].as_str().unwrap();
        assert!(source.ends_with("/small.c"), "{code}");
        assert_eq!(code["line"].as_i64(), Some(line), "{options:?}: {code}");
        assert_eq!(code["object"].as_str(), program.to_str());
        let wanted = format!("records at {source}:{line}");
        let page = String::from_utf8(diagnose(&recording, "text")).unwrap();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&page).contains(&wanted), "{page}");
        let sarif: Value = serde_json::from_slice(&diagnose(&recording, "sarif")).unwrap();
        let results = sarif["runs"][0]["results"].as_array().unwrap();
        let result = results.iter().find(|r| r["ruleId"] == "sync-storm");
        let place = &result.unwrap()["locations"][0]["physicalLocation"];
        assert_eq!(place["region"]["startLine"].as_i64(), Some(line));
        // Every call has its stack.
        assert_eq!(calls_from(&recording, "fsync", "records", line), 200);
    }
}

#[test]
fn who_called_the_c_library_is_found_through_it() {
    need_root!();
    need_program!("cc");
    let scratch = Scratch::new();
    let program = compile(scratch.root(), "small", &["-g", "-O2"]);
    let recording = record(&scratch, &program, "lines", &["--stacks"]);
    assert_eq!(
        calls_from(&recording, "write", "lines", line_of("lines")),
        200
    );
}

#[test]
fn without_debug_information_a_finding_names_the_function() {
    need_root!();
    need_program!("cc");
    let scratch = Scratch::new();
    let program = compile(scratch.root(), "small", &["-O2"]);
    let recording = record(&scratch, &program, "records", &["--stacks"]);
    let code = sync_storm(&recording)["code"][0].clone();
    assert_eq!(code["function"], "records");
    assert!(
        code.get("source").is_none() && code["function_offset"].as_i64() > Some(0),
        "{code}"
    );

    // Off by default.
    let scratch = Scratch::new();
    let program = compile(scratch.root(), "small", &["-O2"]);
    let recording = record(&scratch, &program, "records", &[]);
    assert!(sync_storm(&recording).get("code").is_none());
    assert_eq!(recording.number("SELECT count(*) FROM stacks"), 0);
}
