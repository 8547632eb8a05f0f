//! What commands print as JSON matches the schemas in `docs/reference/json`, which have no room for
//! properties that they do not name.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use fathom_tests::session::query;
use fathom_tests::tools::project;
use fathom_tests::{Record, Scratch, need_program, need_root};
use jsonschema::Validator;
use serde_json::{Map, Value};

use crate::ownership::{ended, imported, plain};

fn validator(name: &str) -> Validator {
    let path = project().join(format!("docs/reference/json/{name}.json"));
    let schema = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

/// Every object in a value, by its path.
fn objects<'a>(value: &'a Value, at: &str, all: &mut Vec<(String, &'a Map<String, Value>)>) {
    match value {
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                objects(item, &format!("{at}/{i}"), all);
            }
        }
        Value::Object(fields) => {
            all.push((at.to_owned(), fields));
            for (name, value) in fields {
                objects(value, &format!("{at}/{name}"), all);
            }
        }
        _ => {}
    }
}

/// Checks JSON, and that nothing could be added to any object of it, nor its first property be
/// left out of the whole.
pub(crate) fn check(name: &str, json: &Value) {
    let validator = validator(name);
    let errors: Vec<_> = validator
        .iter_errors(json)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}:\n{}", errors.join("\n"));
    let mut all = Vec::new();
    objects(json, "", &mut all);
    assert!(!all.is_empty(), "{name}: {json}");
    // Of lists the beginning.
    for (at, _) in all.iter().take(200) {
        let mut more = json.clone();
        more.pointer_mut(at).unwrap()["surprise"] = true.into();
        assert!(!validator.is_valid(&more), "{name}: room for more at {at}");
    }
    let (at, first) = &all[0];
    let field = first.keys().next().unwrap();
    let mut less = json.clone();
    less.pointer_mut(at)
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove(field);
    assert!(!validator.is_valid(&less), "{name}: {field} may be missing");
}

/// Runs a command and checks its JSON.
fn run(name: &str, args: &[&OsStr]) {
    let output = ended(plain().args(args).args(["--format", "json"]));
    // Findings and differences are no failures.
    let status = output.status.code();
    assert!(matches!(status, Some(0 | 1)), "{name}: {output:?}");
    check(name, &serde_json::from_slice(&output.stdout).unwrap());
}

fn run_all(session: &Path, other: &Path) {
    let session = session.as_os_str();
    let word = OsStr::new;
    run("report", &[word("report"), session]);
    run("report-sizes", &[word("report"), word("--sizes"), session]);
    run("diagnose", &[word("diagnose"), session]);
    run("why", &[word("why"), session]);
    run("diff", &[word("diff"), session, other.as_os_str()]);
    run("diff", &[word("diff"), other.as_os_str(), session]);
    let dir = other.parent().unwrap().as_os_str();
    run("sessions", &[word("sessions"), dir]);
    run(
        "sessions-by",
        &[word("sessions"), word("--by=day,host"), dir],
    );
    let set = other.with_file_name("both.fset");
    let set = set.as_os_str();
    let made = [
        word("set"),
        session,
        other.as_os_str(),
        word("--force"),
        word("-o"),
        set,
    ];
    run("set", &made);
    run("report-set", &[word("report"), set]);
    run("diagnose-set", &[word("diagnose"), set]);
}

#[test]
fn json_of_imported_logs_matches_its_schemas() {
    let scratch = Scratch::new();
    let [a, b] = ["a", "b"].map(|name| scratch.session(name));
    imported(&scratch, plain(), &a);
    imported(&scratch, plain(), &b);
    run_all(&a, &b);
    // A session that cannot be read is listed, too.
    fs::write(b.join("session.json"), "{").unwrap();
    run(
        "sessions",
        &["sessions".as_ref(), scratch.root().as_os_str()],
    );
}

/// Calls of several kinds, of which some fail and some wait for a device.
const SCRIPT: &str = "cd \"$0\" && for i in 1 2 3 4 5 6 7 8 9; do \
    dd if=/dev/zero of=file bs=4k count=40 oflag=dsync status=none; \
    cat file file >copy; mv copy other; ls missing; stat -c %s file other; done; true";

#[test]
fn json_of_recordings_matches_its_schemas() {
    need_root!();
    need_program!("dd", "stat");
    let scratch = Scratch::new();
    let record = |name: &str, layers: &str| {
        Record::named(&scratch, name)
            .options(["--content", "hash", "--layers", layers])
            .command(["sh", "-c", SCRIPT])
            .command([scratch.work()])
            .run()
            .must_exit(0)
            .session
    };
    let session = record("all", "all");
    let other = record("calls", "syscall");
    run_all(&session, &other);
    let sql = "SELECT rid, tid FROM syscalls ORDER BY dur_ns DESC LIMIT 1";
    let longest = &query(&session, sql)[0];
    let number = |column| longest.int(column).unwrap().to_string();
    let (rid, tid) = (number("rid"), number("tid"));
    let of = [("why", "--request", &rid), ("why", "--thread", &tid)];
    let paths = [
        ("critical-path", "--request", &rid),
        ("critical-path", "--thread", &tid),
    ];
    for (name, option, value) in of.into_iter().chain(paths) {
        let args = [name, option, value].map(OsStr::new);
        run(name, &[args[0], session.as_os_str(), args[1], args[2]]);
    }
}

#[test]
fn json_of_top_matches_its_schema() {
    need_root!();
    let args = ["top", "--format", "json", "--interval", "0.2", "-n", "3"];
    let output = ended(plain().args(args));
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 3);
    for line in text.lines() {
        check("top", &serde_json::from_str(line).unwrap());
    }
}
