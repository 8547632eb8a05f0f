//! `fathom redact`: secrets that a program had in its paths, arguments, names, and contents are in the
//! session, and not in a byte of the copy or of anything made of it; its numbers are the same.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Seek, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use fathom_model::tables::{ColumnType, Holds, TABLES, Table};
use fathom_tests::environment::{fathom, must_run};
use fathom_tests::session::{meta, query};
use fathom_tests::tools::{export, import, run};
use fathom_tests::{Record, Scratch, need_program, need_root, parts};

/// Every secret, with the place of each in [`PROGRAM`] and in what is recorded of it.
const SECRETS: [&str; 16] = [
    "S1pathsecret",    // a directory
    "S2usersecret",    // a home
    "S3programsecret", // a program
    "S4passwordsecret",
    "S5gluedsecret",
    "S6envsecret",
    "S7urlsecret",
    "S8contentsecret",
    "S9unixsecret",  // a socket's path
    "S10linksecret", // the text of a link
    "S11attributesecret",
    "S12valuesecret", // its value
    "S13labelsecret",
    "S14querysecret",
    "S15spansecret", // an attribute of a span
    "203.0.113.77",
];

const PROGRAM: &str = r#"
import json, os, socket, subprocess, sys, time
work, log = sys.argv[1], sys.argv[2]
os.chdir(work)
private = 'S1pathsecret/home/S2usersecret'
os.makedirs(private)
start = time.time_ns()
# Findings: small synchronous writes, and files that come and go.
fd = os.open(private + '/journal.log', os.O_CREAT | os.O_WRONLY)
for n in range(300):
    os.write(fd, b'S8contentsecret %d\n' % n)
    os.fsync(fd)
os.close(fd)
for n in range(200):
    name = '%s/part-%d.tmp' % (private, n)
    os.close(os.open(name, os.O_CREAT | os.O_RDWR))
    os.unlink(name)
def fails(do):
    try: do()
    except OSError: pass
fails(lambda: os.setxattr(private, 'user.S11attributesecret', b'S12valuesecret'))
os.symlink('/else/S10linksecret', private + '/link')
unix = socket.socket(socket.AF_UNIX)
unix.bind('S9unixsecret')
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fails(lambda: udp.connect(('203.0.113.77', 9)))
with open('/bin/sleep', 'rb') as sleep, open('S3programsecret', 'wb') as own:
    own.write(sleep.read())
os.chmod('S3programsecret', 0o700)
subprocess.run(['./S3programsecret', '0'])
def child(*words): subprocess.run(['/bin/sh', '-c', 'cat /dev/null; true', *words])
child('--password=S4passwordsecret', '-pS5gluedsecret')
child('API_TOKEN=S6envsecret', 'https://me:S7urlsecret@example.org/')
span = {'traceId': '1' * 32, 'spanId': '2' * 16, 'name': 'SELECT x FROM S14querysecret', 'kind': 2,
        'startTimeUnixNano': str(start), 'endTimeUnixNano': str(time.time_ns()), 'status': {'code': 2},
        'attributes': [{'key': 'db.statement', 'value': {'stringValue': 'S15spansecret'}}]}
resource = {'attributes': [{'key': 'process.pid', 'value': {'intValue': str(os.getpid())}}]}
with open(log, 'w') as out:
    json.dump({'resourceSpans': [{'resource': resource, 'scopeSpans': [{'spans': [span]}]}]}, out)
"#;

fn recorded(scratch: &Scratch) -> PathBuf {
    let log = scratch.root().join("spans.json");
    let program = scratch.root().join("program.py");
    fs::write(&program, PROGRAM).unwrap();
    let options = ["--syscalls", "all", "--content", "plain", "--layers", "all"];
    let recording = Record::new(scratch)
        .options(options)
        .options(["--label", "owner=S13labelsecret"])
        .command(["/usr/bin/python3".as_ref(), program.as_os_str()])
        .command([scratch.work().as_os_str(), log.as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    let session = recording.session;
    let into = [
        "import".as_ref(),
        "--into".as_ref(),
        session.as_os_str(),
        log.as_os_str(),
    ];
    must_run(fathom(), into);
    // Cached findings, of which a copy has none.
    assert!(!rules(&session).is_empty());
    session
}

fn redact(session: &Path, copy: &Path, options: &[&str]) -> Output {
    let args = [
        "redact".as_ref(),
        session.as_os_str(),
        "-o".as_ref(),
        copy.as_os_str(),
    ];
    run(args
        .into_iter()
        .chain(options.iter().map(|option| option.as_ref())))
}

fn must_redact(session: &Path, copy: &Path, options: &[&str]) {
    let output = redact(session, copy, options);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

/// All that is in a session: the bytes of its files, and the texts of its tables.
fn everything(session: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    let mut folders = vec![session.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => all.extend(fs::read(path).unwrap()),
            }
        }
    }
    for batch in TABLES
        .iter()
        .flat_map(|table| parts::read(session, table.name))
    {
        for column in batch.columns() {
            let bytes = arrow::compute::cast(column, &DataType::Binary);
            let texts = matches!(column.data_type(), DataType::Utf8 | DataType::Binary);
            let Some(bytes) = bytes.ok().filter(|_| texts) else {
                assert!(!texts, "{}", column.data_type());
                continue;
            };
            for text in bytes.as_binary::<i32>().iter().flatten() {
                all.extend(text);
                all.push(b'\n');
            }
        }
    }
    all
}

fn found(all: &[u8]) -> Vec<&'static str> {
    let text = String::from_utf8_lossy(all);
    let mut secrets = SECRETS.to_vec();
    secrets.retain(|secret| text.contains(secret));
    secrets
}

/// A page with the data in it, which it has compressed.
fn unpacked(page: Vec<u8>) -> Vec<u8> {
    const UNPACK: &str = "import base64, gzip, re, sys\n\
        page = sys.stdin.buffer.read()\n\
        sys.stdout.buffer.write(page)\n\
        for part in re.findall(rb'H4sI[A-Za-z0-9+/=]+', page):\n    \
            sys.stdout.buffer.write(gzip.decompress(base64.b64decode(part)))\n";
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&page).unwrap();
    file.rewind().unwrap();
    let python = Command::new("python3")
        .args(["-c", UNPACK])
        .stdin(file)
        .output();
    let python = python.unwrap();
    assert!(
        python.status.success(),
        "{}",
        String::from_utf8_lossy(&python.stderr)
    );
    python.stdout
}

/// Findings, with their costs.
fn rules(session: &Path) -> BTreeMap<String, Vec<String>> {
    let output = run([
        "diagnose".as_ref(),
        session.as_os_str(),
        "--format=json".as_ref(),
    ]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut rules: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for finding in json["findings"].as_array().unwrap() {
        let rule = finding["rule"].as_str().unwrap().to_owned();
        rules
            .entry(rule)
            .or_default()
            .push(finding["cost_ns"].to_string());
    }
    rules.values_mut().for_each(|costs| costs.sort());
    rules
}

/// All numbers of a table, whatever the order of its rows, and how many texts it has.
fn numbers(session: &Path, table: &Table) -> String {
    let mut columns = vec!["count(*) AS n".to_owned()];
    let mut hashed = Vec::new();
    for column in table.shown() {
        let name = column.name;
        match (column.holds, column.ty) {
            (None | Some(Holds::Words), _) => hashed.push(name),
            // Goes.
            (Some(Holds::Attributes), _) | (_, ColumnType::Blob) => {}
            // Secrets and values of attributes become equal in them.
            (Some(Holds::Arguments | Holds::Command), _) => {
                columns.push(format!("count({name}) AS {name}"));
            }
            (Some(_), _) => columns.push(format!(
                "count({name}) AS {name}, count(DISTINCT {name}) AS {name}_distinct"
            )),
        }
    }
    // Table containers has texts about hosts alone.
    if !hashed.is_empty() {
        columns.push(format!(
            "sum(hash({})::HUGEINT)::VARCHAR AS hashes",
            hashed.join(", ")
        ));
    }
    let sql = format!("SELECT {} FROM {}", columns.join(", "), table.name);
    format!("{:?}", query(session, &sql))
}

#[test]
fn secrets_go_and_numbers_stay() {
    need_root!();
    need_program!("python3");
    let scratch = Scratch::new();
    let session = recorded(&scratch);
    assert_eq!(
        found(&everything(&session)),
        SECRETS,
        "of a session that is not redacted"
    );
    let copy = scratch.session("copy");
    must_redact(&session, &copy, &[]);

    let all = everything(&copy);
    assert_eq!(found(&all), [""; 0]);
    let host = meta(&session)["host"].clone();
    for name in ["name", "machine_id", "boot_id"] {
        let value = host[name].as_str().unwrap();
        let text = String::from_utf8_lossy(&all);
        assert!(value.len() < 6 || !text.contains(value), "{name} {value}");
    }
    assert!(!copy.join("findings.json").exists());
    let root = scratch.root().file_name().unwrap().to_str().unwrap();
    assert!(!String::from_utf8_lossy(&all).contains(root));

    for table in TABLES {
        let (before, after) = (numbers(&session, table), numbers(&copy, table));
        assert_eq!(before, after, "{}", table.name);
    }
    assert_eq!(meta(&session)["totals"], meta(&copy)["totals"]);
    assert_eq!(rules(&session), rules(&copy));

    for format in [
        "chrome",
        "csv",
        "dio",
        "folded",
        "json",
        "opensearch",
        "otlp",
        "strace",
    ] {
        assert_eq!(found(&export(&copy, format, &[]).0), [""; 0], "{format}");
    }
    assert!(!found(&export(&session, "strace", &[]).0).is_empty());
    assert_eq!(found(&export(&session, "strace", &["--redact"]).0), [""; 0]);
    for format in ["text", "json", "html"] {
        let report = |more: &[&str]| {
            let args = ["report", session.to_str().unwrap(), "--format", format];
            must_run(fathom(), args.iter().chain(more))
        };
        assert!(!found(&report(&[])).is_empty(), "{format}");
        assert_eq!(found(&report(&["--redact"])), [""; 0], "{format}");
    }
    let limits = fathom_tests::session::report(&copy)["limits"].to_string();
    assert!(limits.contains("redacted copy"), "{limits}");
    // Every text goes by itself, too, and secrets in what stays.
    let keep = scratch.root().join("keep.json");
    fs::write(
        &keep,
        r#"{"command": "keep", "path": "keep", "name": "keep"}"#,
    )
    .unwrap();
    let kept = scratch.session("kept");
    must_redact(&session, &kept, &["--rules", keep.to_str().unwrap()]);
    let left = found(&everything(&kept));
    assert_eq!(left[..3], SECRETS[..3]);
    for secret in &SECRETS[3..8] {
        assert!(!left.contains(secret), "{secret}");
    }
}

/// A session of a log, which needs no privileges.
fn imported(scratch: &Scratch) -> PathBuf {
    let log = scratch.root().join("log");
    let lines = "7 1700000000.000100 openat(AT_FDCWD, \"/home/alice/a.log\", O_RDONLY) = 3 <0.000010>\n\
                 7 1700000000.000200 read(3</home/alice/a.log>, \"\", 4096) = 0 <0.000020>\n\
                 7 1700000000.000300 close(3</home/alice/a.log>) = 0 <0.000030>\n";
    fs::write(&log, lines).unwrap();
    let session = scratch.session("imported");
    import(&[&log], &session);
    session
}

fn paths(session: &Path) -> Vec<String> {
    let rows = query(session, "SELECT DISTINCT path FROM syscalls ORDER BY path");
    rows.iter()
        .map(|row| row.text("path").unwrap().to_owned())
        .collect()
}

#[test]
fn a_redacted_page_has_no_names() {
    need_program!("python3");
    let scratch = Scratch::new();
    let session = imported(&scratch);
    let names = |options: &[&str]| {
        let page = unpacked(export(&session, "page", options).0);
        String::from_utf8_lossy(&page).matches("alice").count()
    };
    assert!(names(&[]) > 0);
    assert_eq!(names(&["--redact"]), 0);
}

#[test]
fn copies_with_one_key_have_the_same_hashes() {
    let scratch = Scratch::new();
    let session = imported(&scratch);
    assert_eq!(paths(&session), ["/home/alice/a.log"]);
    let key = scratch.root().join("key");
    fs::write(&key, "sixteen bytes or more").unwrap();
    let copy = |name: &str, options: &[&str]| {
        let copy = scratch.session(name);
        must_redact(&session, &copy, options);
        paths(&copy)
    };
    let one = copy("one", &["--key", key.to_str().unwrap()]);
    assert_eq!(one, copy("two", &["--key", key.to_str().unwrap()]));
    assert!(
        one[0].starts_with("/home/x") && one[0].ends_with(".log"),
        "{one:?}"
    );
    let (random, other) = (copy("three", &[]), copy("four", &[]));
    assert!(random != one && random != other);
}

#[test]
fn nothing_is_overwritten_or_left_half() {
    let scratch = Scratch::new();
    let session = imported(&scratch);
    let refused = |copy: &Path, options: &[&str], reason: &str| {
        let output = redact(&session, copy, options);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(reason), "{errors}");
    };
    let copy = scratch.session("copy");
    must_redact(&session, &copy, &[]);
    let before = paths(&copy);
    refused(&copy, &[], "--force");
    assert_eq!(paths(&copy), before);
    must_redact(&session, &copy, &["--force"]);
    assert_ne!(paths(&copy), before);
    refused(&session, &["--force"], "the session itself");

    let folder = scratch.root().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("mine"), "kept").unwrap();
    refused(&folder, &["--force"], "not replaced");
    let link = scratch.root().join("link");
    symlink(&copy, &link).unwrap();
    let before = paths(&copy);
    refused(&link, &[], "--force");
    refused(&link, &["--force"], "symbolic link");
    assert_eq!(paths(&copy), before);
    assert_eq!(fs::read(folder.join("mine")).unwrap(), b"kept");

    // The limit ends it in the middle.
    let half = scratch.session("half");
    let script = "ulimit -c 0; ulimit -f 1; exec \"$@\"";
    let status = Command::new("/bin/sh")
        .args(["-c", script, "sh"])
        .arg(fathom())
        .arg("redact")
        .args([&session, &PathBuf::from("-o"), &half])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success() && !half.exists());

    let wrong = scratch.root().join("rules");
    fs::write(&wrong, "{\n\"path\": \"remove\"\n}").unwrap();
    let with = ["--rules", wrong.to_str().unwrap()];
    refused(&half, &with, "line 2");
    fs::write(&wrong, "short").unwrap();
    refused(
        &half,
        &["--key", wrong.to_str().unwrap()],
        "fewer than 16 bytes",
    );
    let output = redact(&wrong, &half, &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("fathom replay"));
    assert_eq!(output.status.code(), Some(2));
    assert!(!half.exists());
}
