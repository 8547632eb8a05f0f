//! Findings as SARIF 2.1.0, which code hosts and editors show.

use fathom_diagnose::{Diagnosis, Finding, RuleInfo, Severity, Site, catalog};
use serde_json::{Value, json};

/// Findings as a SARIF log. The place of a finding is the file that it is about,
/// where it has one.
pub fn to_sarif(diagnosis: &Diagnosis) -> Value {
    let rules: Vec<Value> = catalog().into_iter().map(rule).collect();
    let results: Vec<Value> = diagnosis.findings.iter().map(result).collect();
    json!({
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [{
            "tool": { "driver": {
                "name": "fathom",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results,
        }],
    })
}

fn rule(info: &RuleInfo) -> Value {
    json!({
        "id": info.id,
        "shortDescription": { "text": info.name },
        "fullDescription": { "text": info.what },
        "help": { "text": info.advice },
    })
}

fn result(finding: &Finding) -> Value {
    let level = match finding.severity {
        Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "note",
    };
    let mut result = json!({
        "ruleId": finding.rule,
        "level": level,
        "message": { "text": format!("{}. {}", finding.title, finding.advice) },
        "properties": {
            "cost_ns": finding.cost_ns,
            "subject": finding.subject,
            "evidence": finding.evidence,
            "examples": finding.examples,
            "code": finding.code,
            "also": finding.also,
            "query": finding.query,
        },
    });
    // The code, where it is known; else the file that the calls are about.
    let code: Vec<Value> = finding.code.iter().filter_map(location).collect();
    let locations = match &finding.subject.path {
        _ if !code.is_empty() => code,
        Some(path) => {
            vec![json!({ "physicalLocation": { "artifactLocation": { "uri": uri(path) }}})]
        }
        None => Vec::new(),
    };
    if let (false, Some(object)) = (locations.is_empty(), result.as_object_mut()) {
        object.insert("locations".to_owned(), locations.into());
    }
    result
}

/// A place in a program: a line of its source, or a byte of its file.
fn location(site: &Site) -> Option<Value> {
    let place = match (&site.source, &site.object) {
        (Some(source), _) => {
            let mut place = json!({ "artifactLocation": { "uri": uri(source) }});
            if let (Some(line), Some(object)) = (site.line, place.as_object_mut()) {
                object.insert("region".to_owned(), json!({ "startLine": line }));
            }
            place
        }
        (None, Some(object)) => json!({
            "artifactLocation": { "uri": uri(object) },
            "region": { "byteOffset": site.offset.unwrap_or(0) },
        }),
        (None, None) => return None,
    };
    let mut location = json!({ "physicalLocation": place });
    if let (Some(function), Some(object)) = (&site.function, location.as_object_mut()) {
        let name = json!([{ "fullyQualifiedName": function, "kind": "function" }]);
        object.insert("logicalLocations".to_owned(), name);
    }
    Some(location)
}

/// A path as a URI: all but unreserved characters are percent-encoded (RFC 3986).
fn uri(path: &str) -> String {
    // The path of a source may be relative to where it was compiled.
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let mut uri = String::from(scheme);
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(byte.into());
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}
