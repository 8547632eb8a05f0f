//! Documents for OpenSearch, compared with the session and with the types of
//! `deploy/opensearch/index-template.json`. `tests/lake/opensearch.py` sends them to a server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::session::query;
use fathom_tests::tools::{export, import, project};
use fathom_tests::{Record, Scratch, need_program, need_root};
use serde_json::{Value, json};

/// Writes files, each in a span. One name has what is special in JSON and on terminals.
const PROGRAM: &str = r#"
import json, os, sys, time
os.chdir(sys.argv[1])
spans = []
for i in range(300):
    begin = time.time_ns()
    with open('part"\\\n\x1b' if i == 0 else f'part-{i}', 'w') as file:
        for _ in range(3):
            file.write('x' * 5000)
            file.flush()
    spans.append({'traceId': f'{i + 1:032x}', 'spanId': f'{i + 1:016x}', 'name': f'job {i % 3}',
                  'startTimeUnixNano': str(begin), 'endTimeUnixNano': str(time.time_ns())})
# A finding without a cost, whatever else the machine does.
for text in ['old', 'new']:
    with open('config.tmp', 'w') as file:
        file.write(text * 2000)
    os.replace('config.tmp', 'config')
fd = os.open('log', os.O_CREAT | os.O_WRONLY)
for i in range(40):
    os.write(fd, b'x' * 100)
    os.fsync(fd)
resource = {'attributes': [{'key': 'process.pid', 'value': {'intValue': os.getpid()}}]}
json.dump({'resourceSpans': [{'resource': resource, 'scopeSpans': [{'spans': spans}]}]}, open(sys.argv[2], 'w'))
"#;

/// Actions and their documents, and the text.
fn bulk(session: &Path, format: &str, options: &[&str]) -> (Vec<(Value, Value)>, String) {
    let text = String::from_utf8(export(session, format, options).0).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let pairs = lines.chunks(2);
    let pairs = pairs.map(|pair| (pair[0]["index"].clone(), pair[1].clone()));
    (pairs.collect(), text)
}

/// The types of all fields, by their whole names; an object whose contents are not indexed is one.
fn types(properties: &Value, prefix: &str, out: &mut BTreeMap<String, String>) {
    for (name, field) in properties.as_object().unwrap() {
        match field.get("properties") {
            Some(inner) => types(inner, &format!("{prefix}{name}."), out),
            None => {
                let kind = field["type"].as_str().unwrap();
                out.insert(format!("{prefix}{name}"), kind.to_owned());
            }
        }
    }
}

fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "long" => value.is_i64(),
        "boolean" => value.is_boolean(),
        "keyword" | "text" => value.is_string(),
        "date_nanos" => value.as_str().unwrap().len() == "2026-01-31T12:00:05.250000000Z".len(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn check_types(document: &Value, prefix: &str, known: &BTreeMap<String, String>) {
    for (name, value) in document.as_object().unwrap() {
        let name = format!("{prefix}{name}");
        match (known.get(&name), value) {
            (Some(kind), Value::Array(values)) => {
                assert!(values.iter().all(|value| has_type(value, kind)), "{name}");
            }
            (Some(kind), value) => assert!(has_type(value, kind), "{name}: {value}"),
            (None, value) => check_types(value, &format!("{name}."), known),
        }
    }
}

#[test]
fn findings_and_slow_requests_are_documents() {
    need_root!();
    need_program!("python3");
    let scratch = Scratch::new();
    let spans = scratch.root().join("spans.json");
    let recording = Record::new(&scratch)
        .options(["--label", "site=a"])
        .command(["python3", "-c", PROGRAM])
        .command([scratch.work().as_os_str(), spans.as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    let session = &recording.session;
    let import = ["import".as_ref(), "--into".as_ref(), session.as_os_str()];
    must_run(fathom(), import.into_iter().chain([spans.as_os_str()]));
    let (documents, text) = bulk(session, "opensearch", &[]);
    assert_eq!(text, bulk(session, "opensearch", &[]).1);

    let template = project().join("deploy/opensearch/index-template.json");
    let template: Value = serde_json::from_slice(&fs::read(template).unwrap()).unwrap();
    let mut known = BTreeMap::new();
    types(
        &template["template"]["mappings"]["properties"],
        "",
        &mut known,
    );
    let mut by_index: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for (action, document) in &documents {
        check_types(document, "", &known);
        let (index, id) = (action["_index"].as_str(), action["_id"].as_str());
        assert!(ids.insert((index.unwrap(), id.unwrap())), "{action} twice");
        by_index.entry(index.unwrap()).or_default().push(document);
        assert_eq!(document["labels"], serde_json::json!(["site=a"]));
    }
    let named: Vec<&str> = template["index_patterns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(
        by_index.keys().copied().collect::<BTreeSet<_>>(),
        named.into_iter().collect()
    );

    let found = query(
        session,
        "SELECT rule, title, severity, cost_ns FROM findings",
    );
    assert!(found.iter().any(|row| row.int("cost_ns").is_none()));
    let findings = &by_index["fathom-findings"];
    assert_eq!(findings.len(), found.len());
    for (rank, (finding, row)) in (1..).zip(findings.iter().zip(&found)) {
        assert_eq!(finding["rank"].as_i64(), Some(rank));
        assert_eq!(finding["rule"].as_str(), row.text("rule"));
        assert_eq!(finding["title"].as_str(), row.text("title"));
        assert_eq!(finding["severity"].as_str(), row.text("severity"));
        assert_eq!(finding["cost_ns"].as_i64(), row.int("cost_ns"));
        assert!(!finding["evidence"].as_object().unwrap().is_empty());
    }
    let [own] = by_index["fathom-sessions"][..] else {
        panic!("several sessions");
    };
    let seen = recording.number("SELECT seen FROM session");
    assert_eq!(own["seen"].as_i64(), Some(seen));
    assert_eq!(own["findings"].as_u64(), Some(found.len() as u64));

    let requests = &by_index["fathom-requests"];
    let calls: Vec<&Value> = requests
        .iter()
        .copied()
        .filter(|r| r["kind"] == "call")
        .collect();
    let slowest = query(
        session,
        "SELECT rid, syscall, dur_ns, path, strftime(wall_time(ts_ns)::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.') \
             || lpad((epoch_ns(wall_time(ts_ns)) % 1000000000)::VARCHAR, 9, '0') || 'Z' AS at \
         FROM syscalls WHERE dur_ns IS NOT NULL ORDER BY dur_ns DESC, rid LIMIT 1000",
    );
    assert_eq!(slowest.len(), 1000);
    assert_eq!(calls.len(), slowest.len());
    for (call, row) in calls.iter().zip(&slowest) {
        assert_eq!(call["rid"].as_i64(), row.int("rid"));
        assert_eq!(call["name"].as_str(), row.text("syscall"));
        assert_eq!(call["path"].as_str(), row.text("path"));
        assert_eq!(call["@timestamp"].as_str(), row.text("at"));
        let layers = call["layer_ns"].as_object().unwrap().values();
        let sum: i64 = layers.map(|ns| ns.as_i64().unwrap()).sum();
        assert_eq!(Some(sum), row.int("dur_ns"), "{call}");
    }
    let in_spans: i64 = requests
        .iter()
        .filter(|r| r["kind"] == "span")
        .map(|span| span["calls"].as_i64().unwrap())
        .sum();
    assert_eq!(requests.len(), calls.len() + 300);
    assert_eq!(
        in_spans,
        recording.number("SELECT count(*) FROM span_calls WHERE span_id IS NOT NULL")
    );

    // A condition chooses calls, and a window calls and spans.
    let (some, _) = bulk(session, "opensearch", &["--where", "syscall = 'fsync'"]);
    let count = |documents: &[(Value, Value)], kind: &str| {
        let of_kind = |(_, document): &&(Value, Value)| document["kind"] == kind;
        documents.iter().filter(of_kind).count() as i64
    };
    assert_eq!((count(&some, "call"), count(&some, "span")), (40, 300));
    let (none, _) = bulk(session, "opensearch", &["--until", "0s"]);
    assert_eq!((count(&none, "call"), count(&none, "span")), (0, 0));
    assert_eq!(none.len(), 1 + found.len());
}

/// Two processes; the second one has two threads, whose reads overlap by 0.1 ms.
const LOG: &str = "\
7 1700000000.000000 openat(AT_FDCWD, \"/a.log\", O_RDONLY) = 3 <0.000010>
7 1700000000.000100 read(3</a.log>, \"\", 4096) = 0 <0.000100>
7 1700000000.000350 read(3</a.log>, \"\", 4096) = 0 <0.000100>
7 1700000000.000990 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f00) = 20 <0.000005>
20 1700000000.001000 openat(AT_FDCWD, \"/b.log\", O_RDONLY) = 3 <0.000010>
20 1700000000.001020 clone(child_stack=0x7f00, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM, parent_tid=[21]) = 21 <0.000010>
20 1700000000.002100 read(3</b.log>, \"\", 4096) = 0 <0.000200>
21 1700000000.002200 read(3</b.log>, \"\", 4096) = 0 <0.000200>
";

/// A span of `LOG`: microseconds from and until; its thread if it has one.
fn span(id: u32, parent: u32, name: &str, us: [u64; 2], pid: i32, tid: Option<i32>) -> Value {
    let at = |us: u64| (1_700_000_000_000_000_000 + us * 1000).to_string();
    let number = |key: &str, n: i32| json!({"key": key, "value": {"intValue": n.to_string()}});
    let trace = if pid == 7 { 1 } else { 2 };
    let mut span = json!({
        "traceId": format!("{trace:032x}"),
        "spanId": format!("{id:016x}"),
        "name": name,
        "startTimeUnixNano": at(us[0]),
        "endTimeUnixNano": at(us[1]),
        "attributes": tid.map(|tid| number("thread.id", tid)).into_iter().collect::<Vec<_>>(),
    });
    if parent > 0 {
        span["parentSpanId"] = format!("{parent:016x}").into();
    }
    let resource = json!({"attributes": [number("process.pid", pid)]});
    json!({"resource": resource, "scopeSpans": [{"spans": [span]}]})
}

#[test]
fn time_outside_of_calls_is_outside_of_all_of_them() {
    let scratch = Scratch::new();
    let (log, spans) = (
        scratch.root().join("log"),
        scratch.root().join("spans.json"),
    );
    fs::write(&log, LOG).unwrap();
    let all = json!({"resourceSpans": [
        span(1, 0, "outer", [50, 1050], 7, Some(7)),
        span(2, 1, "inner", [300, 600], 7, Some(7)),
        span(3, 0, "threads", [2000, 3000], 20, None),
    ]});
    fs::write(&spans, all.to_string()).unwrap();
    let session = scratch.session("session");
    import(&[&log], &session);
    let into = ["import".as_ref(), "--into".as_ref(), session.as_os_str()];
    must_run(fathom(), into.into_iter().chain([spans.as_os_str()]));
    let (documents, _) = bulk(&session, "opensearch", &[]);
    let found: BTreeMap<&str, &Value> = documents
        .iter()
        .filter(|(_, document)| document["kind"] == "span")
        .map(|(_, span)| (span["name"].as_str().unwrap(), span))
        .collect();
    let times = |name| {
        let span: &Value = found[name];
        let layers = &span["layer_ns"];
        [&span["calls"], &layers["syscall"], &layers["outside"]].map(|n| n.as_i64().unwrap())
    };
    assert_eq!(found.len(), 3);
    // Its own call and the one of the inner span take 0.1 ms each.
    assert_eq!(times("outer"), [1, 100_000, 800_000]);
    assert_eq!(times("inner"), [1, 100_000, 200_000]);
    // From 2.1 to 2.4 ms.
    assert_eq!(times("threads"), [2, 400_000, 700_000]);
}

#[test]
fn findings_of_rules_of_users_tell_nothing_of_their_files() {
    let scratch = Scratch::new();
    let log = scratch.root().join("log");
    fs::write(&log, LOG).unwrap();
    let session = scratch.session("session");
    import(&[&log], &session);
    let rules = scratch.root().join("S1homesecret/rules");
    fs::create_dir_all(&rules).unwrap();
    let rule = "-- Reads.\n--\n-- title: {path} is read\n-- severity: high\n-- advice: Do not.\n\
        SELECT path FROM syscalls WHERE syscall = 'read' AND path <> 'S2querysecret' GROUP BY path";
    fs::write(rules.join("own-reads.sql"), rule).unwrap();
    let dir = rules.parent().unwrap().to_str().unwrap();
    let own = |more: &[&str]| {
        let options = [&["--extensions", dir], more].concat();
        let (documents, text) = bulk(&session, "opensearch", &options);
        let mut documents = documents.into_iter().map(|(_, document)| document);
        let own = documents.find(|d| d["rule"] == "own-reads").unwrap();
        (own, text)
    };
    let (finding, text) = own(&[]);
    assert_eq!(finding["page"], "own-reads.sql");
    assert!(finding["query"].as_str().unwrap().contains("S2querysecret"));
    assert!(!text.contains("S1homesecret"));
    assert_eq!(finding.get("redacted"), None);
    let (finding, text) = own(&["--redact"]);
    assert_eq!(finding["page"], "own-reads.sql");
    assert_eq!(finding.get("query"), None);
    assert!(!text.contains("S1homesecret") && !text.contains("S2querysecret"));
    assert_eq!(finding["redacted"], true);
}

#[test]
fn counts_of_a_session_in_progress_are_of_its_rows() {
    need_root!();
    let scratch = Scratch::new();
    let mut running = Record::new(&scratch)
        .interactive()
        .command([
            "sh",
            "-c",
            "cat /etc/passwd > /dev/null; echo ready; read x",
        ])
        .spawn();
    assert_eq!(running.line(), "ready");
    let session = running.session();
    let mut all = Vec::new();
    running.until("rows", || {
        if !session.join("session.json").exists() {
            return false;
        }
        all = bulk(&session, "opensearch", &[]).0;
        all.iter().any(|(_, document)| document["kind"] == "call")
    });
    let of = |index: &str| {
        let of_index = all.iter().filter(|(action, _)| action["_index"] == index);
        of_index.map(|(_, document)| document).collect::<Vec<_>>()
    };
    let [own] = of("fathom-sessions")[..] else {
        panic!("{all:?}");
    };
    assert_eq!(own["state"], "recording");
    let number = |name: &str| own[name].as_u64().unwrap();
    assert_eq!(number("stored"), of("fathom-requests").len() as u64);
    assert_eq!(number("seen"), number("stored") + number("lost"));
    running.say("\n");
    running.wait().must_exit(0);
}

#[test]
fn documents_of_dio_have_ids() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command(["cat", "/etc/passwd", "/etc/group"])
        .run()
        .must_exit(0);
    let (documents, text) = bulk(&recording.session, "dio-bulk", &[]);
    let ids: BTreeSet<&str> = documents
        .iter()
        .map(|(action, _)| {
            assert_eq!(action["_index"], "dio_trace");
            action["_id"].as_str().unwrap()
        })
        .collect();
    assert_eq!(ids.len(), documents.len());
    let without: String = text
        .lines()
        .skip(1)
        .step_by(2)
        .map(|line| format!("{line}\n"))
        .collect();
    let plain = export(&recording.session, "dio", &[]).0;
    assert_eq!(without, String::from_utf8(plain).unwrap());
}
