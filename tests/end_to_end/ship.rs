//! `fathom ship`: the objects are the session's rows; requests that fail, stores that go away, and
//! kills lose and double nothing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use arrow::array::AsArray;
use arrow::compute::sum;
use arrow::datatypes::Int64Type;
use fathom_model::tables::TABLES;
use fathom_testkit::Random;
use fathom_tests::environment::fathom;
use fathom_tests::fake_store::{BUCKET, FakeStore};
use fathom_tests::session::query;
use fathom_tests::tools::{import, project};
use fathom_tests::{Record, Scratch, need_root, rounds};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

/// A session of a log with calls on several files.
fn session(scratch: &Scratch) -> PathBuf {
    let log = scratch.root().join("strace.log");
    let mut text = String::new();
    for n in 0..3000 {
        let (at, file) = (1_700_000_000.0 + f64::from(n) / 1000.0, n % 7);
        text.push_str(&format!(
            "12 {at:.6} pwrite64(3</data/file-{file}>, \"x\", {}, {}) = {} <0.{:06}>\n",
            n + 1,
            n * 4096,
            n + 1,
            n % 900 + 1
        ));
    }
    fs::write(&log, text).unwrap();
    let session = scratch.session("log");
    import(&[&log], &session);
    session
}

fn ship(session: &Path, to: &str, options: &[&str]) -> Command {
    let mut command = Command::new(fathom());
    command
        .arg("ship")
        .arg(session)
        .args(["--to", to])
        .args(options);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs it, which must succeed; returns its messages.
fn shipped(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

/// Every file below a directory, by its path in it.
pub(crate) fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let mode = path.symlink_metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", path.display());
            match path.is_dir() {
                true => dirs.push(path),
                false => {
                    let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                    found.insert(name.to_owned(), fs::read(&path).unwrap());
                }
            }
        }
    }
    found
}

/// Rows of a table of the lake, and the sum of one of its columns.
pub(crate) fn rows(
    lake: &BTreeMap<String, Vec<u8>>,
    table: &str,
    column: Option<&str>,
) -> (i64, i64) {
    let (mut rows, mut total) = (0, 0);
    for (_, bytes) in lake
        .iter()
        .filter(|(name, _)| name.starts_with(&format!("{table}/")))
    {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes.clone()));
        for batch in reader.unwrap().build().unwrap() {
            let batch = batch.unwrap();
            rows += batch.num_rows() as i64;
            let values = column.map(|column| batch.column_by_name(column).unwrap());
            let values = values.map(|values| sum(values.as_primitive::<Int64Type>()));
            total += values.flatten().unwrap_or(0);
        }
    }
    (rows, total)
}

#[test]
fn a_directory_has_the_rows_of_the_session() {
    let scratch = Scratch::new();
    let session = session(&scratch);
    let lake = scratch.root().join("lake");
    let to = lake.display().to_string();
    let first = shipped(ship(&session, &to, &[]));
    assert!(first.contains("all uploaded"), "{first}");
    let objects = files(&lake);
    for table in TABLES.iter().map(|table| table.name) {
        let expected = query(&session, &format!("SELECT count(*) AS n FROM {table}"));
        // Bios that are alone in their request are in the rows of table block.
        assert_eq!(
            Some(rows(&objects, table, None).0),
            expected[0].int("n"),
            "{table}"
        );
    }
    let sums = "SELECT sum(bytes) AS bytes, sum(dur_ns) AS ns, count(*) AS n FROM syscalls";
    let sums = query(&session, sums);
    assert_eq!(sums[0].int("n"), Some(3000));
    assert_eq!(sums[0].int("bytes"), Some(3000 * 3001 / 2));
    for (column, name) in [("bytes", "bytes"), ("dur_ns", "ns")] {
        let (_, total) = rows(&objects, "syscalls", Some(column));
        assert_eq!(Some(total), sums[0].int(name), "{column}");
    }
    // The identity, from the lake alone.
    let total = |column| rows(&objects, "sessions", Some(column)).1;
    let parts = ["stored", "lost", "expired", "counted", "missing"].map(total);
    assert_eq!(
        (total("seen"), parts.iter().sum::<i64>(), total("stored")),
        (3000, 3000, 3000)
    );
    let id = query(&session, "SELECT id FROM session");
    let id = id[0].text("id").unwrap();
    let marker = objects
        .iter()
        .find(|(name, _)| name.starts_with("_sessions/"))
        .unwrap();
    assert!(
        marker.0.ends_with(&format!("/session={id}/session.json")),
        "{}",
        marker.0
    );
    assert!(marker.0.contains("/date=2023-11-14/host="), "{}", marker.0);
    let marker: Value = serde_json::from_slice(marker.1).unwrap();
    let named = marker["objects"].as_array().unwrap();
    assert_eq!(named.len() + 1, objects.len());
    for object in named {
        let there = &objects[object["path"].as_str().unwrap()];
        assert_eq!(object["bytes"], there.len());
    }
    let again = shipped(ship(&session, &format!("file://{to}"), &[]));
    assert!(again.contains("all were there"), "{again}");
    assert!(files(&lake) == objects);
}

/// Every third request fails, and the store is away in between.
#[test]
fn a_store_that_fails_and_goes_away_gets_each_object_once() {
    let scratch = Scratch::new();
    let session = session(&scratch);
    let to = format!("s3://{BUCKET}/a/lake");
    let calm = FakeStore::start(false);
    shipped({
        let mut command = ship(&session, &to, &[]);
        command.envs(calm.environment());
        command
    });
    let expected = calm.contents().objects.clone();
    assert!(expected.len() > TABLES.len());
    let lake: BTreeMap<String, Vec<u8>> = expected
        .iter()
        .map(|(key, bytes)| {
            (
                key.strip_prefix("a/lake/").unwrap().to_owned(),
                bytes.clone(),
            )
        })
        .collect();
    assert_eq!(
        rows(&lake, "syscalls", Some("bytes")),
        (3000, 3000 * 3001 / 2)
    );
    let mut store = FakeStore::start(true);
    let mut command = ship(&session, &to, &[]);
    let child = command.envs(store.environment()).spawn().unwrap();
    wait_for(&store, 20);
    store.stop();
    let before = store.requests();
    store.go_on();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(store.requests() > before);
    {
        let contents = store.contents();
        assert!(
            contents.objects == expected,
            "{:?}",
            contents.objects.keys()
        );
        assert_eq!(contents.changed, Vec::<String>::new());
    }
    let writes = store.contents().writes;
    let mut again = ship(&session, &to, &[]);
    again.envs(store.environment());
    assert!(shipped(again).contains("all were there"));
    assert_eq!(store.contents().writes, writes);
    // A store that does not come back is named, and what is missing is shipped later.
    store.stop();
    let mut away = ship(&session, &to, &["--retry-for", "200ms"]);
    let output = away.envs(store.environment()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = said(&output);
    assert!(
        text.contains(&format!("cannot read {to}/_sessions/")),
        "{text}"
    );
    assert!(text.contains("ship again"), "{text}");
}

fn wait_for(store: &FakeStore, requests: u64) {
    let start = Instant::now();
    while store.requests() < requests {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills the command after some time; whether it had not ended by itself.
fn kill_after(mut child: Child, time: Duration) -> bool {
    std::thread::sleep(time);
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

/// FATHOM_ROUNDS=300 kills as often.
#[test]
fn kills_at_any_moment_lose_and_double_nothing() {
    let rounds = rounds(10);
    let scratch = Scratch::new();
    let session = session(&scratch);
    let seed = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let lake = |name: &str| scratch.root().join(name);
    let start = Instant::now();
    shipped(ship(&session, lake("calm").to_str().unwrap(), &[]));
    let whole = start.elapsed();
    let expected = files(&lake("calm"));
    let killed = lake("killed");
    let mut interrupted = 0;
    for round in 0..rounds {
        let child = ship(&session, killed.to_str().unwrap(), &[])
            .spawn()
            .unwrap();
        let time = random.below(whole.as_nanos() as u64);
        interrupted += u32::from(kill_after(child, Duration::from_nanos(time)));
        if round % 4 == 3 && killed.exists() {
            // Further attempts begin with some of the objects.
            let marker = files(&killed)
                .into_keys()
                .find(|name| name.starts_with("_sessions/"));
            let half = files(&killed).into_keys().filter(|_| random.below(2) == 0);
            for name in half.chain(marker) {
                let _ = fs::remove_file(killed.join(name));
            }
        }
    }
    assert!(interrupted > 0);
    shipped(ship(&session, killed.to_str().unwrap(), &[]));
    assert!(files(&killed) == expected, "{:?}", files(&killed).keys());
    // The same with a store.
    let store = FakeStore::start(false);
    let to = format!("s3://{BUCKET}/lake");
    for _ in 0..rounds {
        let child = ship(&session, &to, &[])
            .envs(store.environment())
            .spawn()
            .unwrap();
        kill_after(
            child,
            Duration::from_nanos(random.below(whole.as_nanos() as u64)),
        );
    }
    let mut last = ship(&session, &to, &[]);
    last.envs(store.environment());
    shipped(last);
    let contents = store.contents();
    let there: BTreeMap<String, Vec<u8>> = contents
        .objects
        .iter()
        .map(|(key, bytes)| (key.strip_prefix("lake/").unwrap().to_owned(), bytes.clone()))
        .collect();
    assert!(there == expected, "{:?}", there.keys());
    assert_eq!(contents.changed, Vec::<String>::new());
}

#[test]
fn bad_input_is_refused_and_named() {
    let scratch = Scratch::new();
    let session = session(&scratch);
    let refused = |command: &mut Command| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        said(&output)
    };
    let lake = scratch.root().join("lake");
    let to = lake.to_str().unwrap();
    for (to, options, part) in [
        ("ftp://x", &[][..], "not a destination"),
        (to, &["--redact"], "ship --redact needs --key FILE"),
        (to, &["--redact", "--key", "/nowhere"], "/nowhere"),
        (to, &["--key", "/nowhere"], "--redact"),
    ] {
        let text = refused(&mut ship(&session, to, options));
        assert!(text.contains(part), "{text}");
    }
    assert!(!lake.exists());
    // One that cannot be shipped does not keep the others from it.
    let missing = scratch.session("missing");
    let text = refused(ship(&missing, to, &[]).arg(&session));
    assert!(text.contains("missing.fathom is not a session"), "{text}");
    assert!(text.contains("all uploaded"), "{text}");
    // A part that was damaged.
    let dir = session.join("syscalls");
    let part = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&part, bytes).unwrap();
    let text = refused(&mut ship(&session, to, &["--force"]));
    assert!(text.contains("fathom repair"), "{text}");
}

/// A session of a program that syncs after each small write: rules fire.
fn synced(scratch: &Scratch) -> PathBuf {
    let script =
        "i=0; while [ $i -lt 200 ]; do echo x >> planted; sync planted; i=$((i + 1)); done";
    let command = format!("cd '{}' && {script}", scratch.work().display());
    let recording = Record::new(scratch)
        .command(["sh", "-c", &command])
        .run()
        .must_exit(0);
    recording.session.clone()
}

/// The rows of table `findings` of a lake, as JSON.
fn findings_of(lake: &Path) -> Vec<Value> {
    let mut found = Vec::new();
    for (name, bytes) in files(lake) {
        if name.starts_with("findings/") {
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes));
            for batch in reader.unwrap().build().unwrap() {
                let mut writer = arrow::json::WriterBuilder::new()
                    .with_explicit_nulls(true)
                    .build::<_, arrow::json::writer::LineDelimited>(Vec::new());
                writer.write(&batch.unwrap()).unwrap();
                writer.finish().unwrap();
                let lines = String::from_utf8(writer.into_inner()).unwrap();
                found.extend(
                    lines
                        .lines()
                        .map(|line| serde_json::from_str(line).unwrap()),
                );
            }
        }
    }
    found.sort_by_key(|row: &Value| row["rank"].as_i64());
    found
}

#[test]
fn findings_are_the_rows_of_the_table_and_are_redacted() {
    need_root!();
    let scratch = Scratch::new();
    let session = synced(&scratch);
    let lake = scratch.root().join("lake");
    shipped(ship(&session, lake.to_str().unwrap(), &[]));
    let mut found = findings_of(&lake);
    let asked = Command::new(fathom())
        .args(["query", "--format", "json"])
        .arg(&session)
        .arg("SELECT * FROM findings")
        .output()
        .unwrap();
    let expected: Vec<Value> = serde_json::from_slice(&asked.stdout).unwrap();
    assert!(!expected.is_empty());
    for (place, row) in found.iter_mut().enumerate() {
        let rank = row.as_object_mut().unwrap().remove("rank").unwrap();
        assert_eq!(rank, place + 1);
    }
    assert_eq!(found, expected);
    let paths = |rows: &[Value]| rows.iter().any(|row| row.to_string().contains("planted"));
    assert!(paths(&found));

    let key = scratch.root().join("key");
    fs::write(&key, [7; 32]).unwrap();
    let other = scratch.root().join("redacted");
    let key = key.to_str().unwrap();
    let options = ["--redact", "--key", key];
    shipped(ship(&session, other.to_str().unwrap(), &options));
    let redacted = findings_of(&other);
    let rules =
        |rows: &[Value]| -> Vec<Value> { rows.iter().map(|row| row["rule"].clone()).collect() };
    assert_eq!(rules(&redacted), rules(&found));
    assert!(!paths(&redacted), "{redacted:?}");

    let none = scratch.root().join("none");
    shipped(ship(&session, none.to_str().unwrap(), &["--no-findings"]));
    assert!(findings_of(&none).is_empty());
    let said = shipped(ship(&session, none.to_str().unwrap(), &[]));
    assert!(said.contains("4 uploaded"), "{said}");
    assert_eq!(findings_of(&none).len(), found.len());
}

/// The page names each column that engines find in another form.
#[test]
fn the_page_has_the_formula_of_each_difference() {
    let page = fs::read_to_string(project().join("docs/how-to/ship-sessions.md")).unwrap();
    let mut expected = Vec::new();
    for table in TABLES {
        for column in table.columns {
            if let Some(formula) = column.formula() {
                expected.push(format!(
                    "| `{}` | `{}` | `{formula}` |",
                    table.name, column.name
                ));
            }
        }
    }
    let (_, section) = page
        .split_once("\n## Columns that are stored as differences\n")
        .unwrap();
    let found: Vec<&str> = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    assert!(expected.len() > 5);
    assert_eq!(found, expected);
}
