//! `docs/reference/openapi.json`: that it is OpenAPI, and that the page's server answers every
//! address as it says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use fathom_tests::page::{Answer, Page};
use fathom_tests::session::query;
use fathom_tests::tools::project;
use fathom_tests::{Record, Scratch, need_program, need_python, need_root};
use jsonschema::Validator;
use serde_json::{Value, json};

/// Reads and writes that wait for a device, failures, and two names of threads.
const SCRIPT: &str = "cd \"$0\" && for i in 1 2 3 4 5; do \
    dd if=/dev/zero of=file bs=4k count=40 oflag=dsync status=none; \
    cat file file >copy; mv copy other; ls missing; stat -c %s file other; done; true";

fn document() -> Value {
    let path = project().join("docs/reference/openapi.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A schema of the document, with the schemas that it refers to.
fn validator(document: &Value, schema: &Value) -> Validator {
    let schema = json!({ "allOf": [schema], "components": document["components"] });
    jsonschema::draft202012::new(&schema).unwrap()
}

#[track_caller]
fn check(document: &Value, schema: &Value, value: &Value, asked: &str) {
    let validator = validator(document, schema);
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{asked}:\n{}", errors.join("\n"));
}

/// Checks an answer against what the document says about an operation; returns the columns of one
/// that has columns.
fn check_answer(document: &Value, operation: &Value, answer: &Answer, asked: &str) -> Vec<String> {
    assert_eq!(answer.status, 200, "{asked}: {}", answer.text());
    let content = operation["responses"]["200"]["content"]
        .as_object()
        .unwrap();
    let kind = answer.header("content-type").unwrap();
    let described = content
        .get(kind)
        .unwrap_or_else(|| panic!("{asked}: {kind} is not described"));
    match kind {
        "application/json" => {
            let value = serde_json::from_slice(&answer.body).unwrap();
            check(document, &described["schema"], &value, asked);
            Vec::new()
        }
        "application/x-ndjson" => {
            let text = answer.text();
            assert!(!text.is_empty(), "{asked}");
            for line in text.lines() {
                let line = serde_json::from_str(line).unwrap();
                check(document, &described["x-line-schema"], &line, asked);
            }
            Vec::new()
        }
        "application/vnd.apache.arrow.stream" => {
            let table = answer.table();
            check(document, &described["x-arrow-metadata"], &table.meta, asked);
            let columns = described["x-arrow-columns"].as_array().unwrap();
            let known: BTreeSet<&str> = columns.iter().filter_map(|c| c["name"].as_str()).collect();
            let own: BTreeSet<String> = table.rows.iter().flat_map(|r| r.keys().cloned()).collect();
            let any = known.contains("*");
            let described = |column: &&String| any || known.contains(column.as_str());
            let unknown: Vec<_> = own.iter().filter(|c| !described(c)).collect();
            assert!(unknown.is_empty(), "{asked}: not described: {unknown:?}");
            own.into_iter().collect()
        }
        other => panic!("{asked}: {other}"),
    }
}

/// Parameters of an operation, without those that are parts of its path.
fn parameters<'a>(document: &'a Value, operation: &'a Value) -> Vec<&'a Value> {
    let resolved = |parameter: &'a Value| match parameter["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => parameter,
    };
    let all = operation["parameters"].as_array().unwrap().iter();
    all.map(resolved).filter(|p| p["in"] == "query").collect()
}

/// Requests of an operation: all required parameters and those with a known value, and one more
/// for each further value of a parameter that lists its values.
fn requests(
    document: &Value,
    path: &str,
    operation: &Value,
    values: &BTreeMap<&str, String>,
) -> Vec<String> {
    let mut path = path.to_owned();
    for name in ["id", "rid", "name", "question"] {
        path = path.replace(&format!("{{{name}}}"), &values[name]);
    }
    let mut usual = Vec::new();
    let mut more = Vec::new();
    for parameter in parameters(document, operation) {
        let name = parameter["name"].as_str().unwrap();
        match parameter["schema"]["enum"].as_array() {
            Some(all) => {
                let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
                more.extend(all.iter().map(|v| format!("{name}={}", text(v))));
            }
            None if values.contains_key(name) => usual.push(format!("{name}={}", values[name])),
            None => assert_ne!(parameter["required"], true, "{path}: no value for {name}"),
        }
    }
    let usual = usual.join("&");
    let with = |more: &str| format!("{path}?{usual}&{more}");
    match more.is_empty() {
        true => vec![with("")],
        false => more.iter().map(|m| with(m)).collect(),
    }
}

#[test]
fn the_document_is_openapi() {
    let python = need_python!();
    let output = Command::new(python)
        .arg(project().join("tests/python/openapi_check.py"))
        .arg(project().join("docs/reference/openapi.json"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn every_address_answers_as_described() {
    need_root!();
    need_program!("dd", "stat");
    let scratch = Scratch::new();
    let recording = Record::named(&scratch, "run")
        .options(["--layers", "all"])
        .command(["sh", "-c", SCRIPT])
        .command([scratch.work()])
        .run()
        .must_exit(0);
    let document = document();
    let page = Page::serve(&recording.session);
    let one = |sql: &str, column: &str| query(&recording.session, sql)[0].int(column).unwrap();
    let rid = one(
        "SELECT rid FROM syscalls WHERE syscall = 'write' ORDER BY dur_ns DESC LIMIT 1",
        "rid",
    );
    let tid = one(
        &format!("SELECT tid FROM syscalls WHERE rid = {rid}"),
        "tid",
    );
    let file = one(
        &format!("SELECT file_id FROM syscalls WHERE rid = {rid}"),
        "file_id",
    );
    let id = page.json("/sessions")[0]["id"].as_str().unwrap().to_owned();
    let devices = page.json(&format!("/sessions/{id}/devices"));
    let device = devices[0]["name"].as_str().unwrap_or("none").to_owned();
    let values = BTreeMap::from([
        ("id", id.clone()),
        ("rid", rid.to_string()),
        ("name", device),
        ("lanes", tid.to_string()),
        ("file", file.to_string()),
        ("before", id.clone()),
        ("after", id),
        ("begin", "0".to_owned()),
        ("end", "1e12".to_owned()),
        ("least", "100000".to_owned()),
        ("most", "1e12".to_owned()),
        ("by", "day,host".to_owned()),
        ("top", "5".to_owned()),
        ("pixels", "50".to_owned()),
        ("f", "%7B%22error%22:%22none%22%7D".to_owned()),
        ("limit", "40".to_owned()),
        ("sort", "-dur_ns".to_owned()),
        ("question", "library-call".to_owned()),
        ("counting", "own".to_owned()),
        ("call", "1".to_owned()),
        ("tids", format!("{tid},{tid}")),
        ("kind", "server".to_owned()),
        ("service", "shop".to_owned()),
        ("trace", "ab".to_owned()),
        ("span", "cd".to_owned()),
    ]);
    let paths = document["paths"].as_object().unwrap();
    let mut walked = 0;
    let mut columns = BTreeMap::<&str, BTreeSet<String>>::new();
    for (path, operations) in paths {
        let Some(operation) = operations.get("get") else {
            continue;
        };
        for asked in requests(&document, path, operation, &values) {
            let answer = page.get(&asked);
            let own = check_answer(&document, operation, &answer, &asked);
            columns.entry(path).or_default().extend(own);
        }
        walked += 1;
    }
    assert_eq!(
        walked,
        paths.len() - 4,
        "all but the ones that are only posted to"
    );
    // What was checked were rows, not empty answers.
    for (path, most) in [
        ("tiles", 14),
        ("top", 12),
        ("events", 20),
        ("offsets", 6),
        ("layers", 4),
    ] {
        let path = format!("/sessions/{{id}}/{path}");
        let own = &columns[path.as_str()];
        assert!(own.len() >= most, "{path}: {own:?}");
    }
    questions(&document, &page, &values);
    posted(&document, &page, &values["id"]);
    refused(&document, &page, &values["id"]);
}

/// Every question that the document lists.
fn questions(document: &Value, page: &Page, values: &BTreeMap<&str, String>) {
    let path = "/sessions/{id}/questions/{question}";
    let operation = &document["paths"][path]["get"];
    let listed = operation["description"].as_str().unwrap().split("\n- `");
    let mut asked = 0;
    for listed in listed.skip(1) {
        let mut values = values.clone();
        values.insert("question", listed[..listed.find('`').unwrap()].to_owned());
        for request in requests(document, path, operation, &values) {
            let answer = page.get(&request);
            check_answer(document, operation, &answer, &request);
        }
        asked += 1;
    }
    assert!(asked >= 10, "{asked} questions");
}

/// A statement, and its description.
fn posted(document: &Value, page: &Page, id: &str) {
    let operation = &document["paths"]["/sessions/{id}/sql"]["post"];
    let body = json!({ "sql": "SELECT 1 AS one", "max_rows": 3 });
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    check(document, schema, &body, "the body of a statement");
    assert!(!validator(document, schema).is_valid(&json!({ "max_rows": 3 })));
    let answer = page.sql(id, "SELECT 1 AS one");
    assert_eq!(check_answer(document, operation, &answer, "sql"), ["one"]);
}

/// Every listed parameter refuses other values, with an error as described.
fn refused(document: &Value, page: &Page, id: &str) {
    let error =
        &document["components"]["responses"]["Error"]["content"]["application/json"]["schema"];
    let mut tried = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let Some(operation) = operations.get("get") else {
            continue;
        };
        for parameter in parameters(document, operation) {
            let is_text = parameter["schema"]["type"] == "string";
            if !is_text || parameter["schema"].get("enum").is_none() {
                continue;
            }
            let name = parameter["name"].as_str().unwrap();
            let path = path.replace("{id}", id).replace("{name}", "sda");
            let asked = format!("{path}?{name}=nonsense");
            let answer = page.get(&asked);
            assert_eq!(answer.status, 400, "{asked}: {}", answer.text());
            let value = serde_json::from_slice(&answer.body).unwrap();
            check(document, error, &value, &asked);
            assert_eq!(value["error"]["subject"], name, "{asked}");
            tried += 1;
        }
    }
    assert!(tried >= 6, "{tried}");
    let missing = page.get("/sessions/missing");
    assert_eq!(missing.status, 404);
    check(
        document,
        error,
        &serde_json::from_slice(&missing.body).unwrap(),
        "missing",
    );
}
