//! Findings as SARIF 2.1.0, which code hosts and editors show.

use fathom_diagnose::{Diagnosis, Finding, RuleInfo, Severity, catalogue};
use serde_json::{Value, json};

/// Findings as a SARIF log. The place of a finding is the file that it is about,
/// where it has one.
pub fn to_sarif(diagnosis: &Diagnosis) -> Value {
    let rules: Vec<Value> = catalogue().into_iter().map(rule).collect();
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
            "lost_ns": finding.lost_ns,
            "subject": finding.subject,
            "evidence": finding.evidence,
            "examples": finding.examples,
            "query": finding.query,
        },
    });
    if let (Some(path), Some(object)) = (&finding.subject.path, result.as_object_mut()) {
        object.insert(
            "locations".to_owned(),
            json!([{ "physicalLocation": { "artifactLocation": { "uri": uri(path) }}}]),
        );
    }
    result
}

/// A path as a URI: all but unreserved characters are percent-encoded (RFC 3986).
fn uri(path: &str) -> String {
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(byte.into());
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}
