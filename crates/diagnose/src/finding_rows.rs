//! Findings as rows of a table.

use fathom_model::findings::FindingRow;

use crate::engine::Diagnosis;
use crate::finding::{Confidence, Finding, Group};

/// The rows of table `findings`.
pub fn finding_rows(diagnosis: &Diagnosis) -> Vec<FindingRow> {
    diagnosis.findings.iter().map(row).collect()
}

fn row(finding: &Finding) -> FindingRow {
    let evidence = finding.evidence.iter();
    let evidence: serde_json::Map<_, _> = evidence
        .map(|e| (e.name.to_string(), e.value.into()))
        .collect();
    FindingRow {
        rule: finding.rule.to_owned(),
        severity: finding.severity.name().to_owned(),
        correctness: finding.group == Group::Correctness,
        confidence: match finding.confidence {
            Confidence::High => "high",
            Confidence::Low => "low",
        }
        .to_owned(),
        cost_ns: finding.cost_ns,
        title: finding.title.clone(),
        subject: finding.subject.text(),
        pid: finding.subject.pid,
        tid: finding.subject.tid,
        comm: finding.subject.comm.clone(),
        file_id: finding.subject.file_id,
        path: finding.subject.path.clone(),
        evidence: serde_json::Value::Object(evidence).to_string(),
        examples: finding.examples.iter().map(|e| e.rid).collect(),
        advice: finding.advice.clone(),
        query: finding.query.clone(),
        page: finding.page.clone(),
        caveats: (!finding.caveats.is_empty()).then(|| finding.caveats.join("\n")),
    }
}
