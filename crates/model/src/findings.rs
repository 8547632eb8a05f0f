//! Findings of the diagnosis as rows of a table.

use serde::{Deserialize, Serialize};

/// A row of table `findings`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // The columns, which crates/query/sql/tables/findings.sql documents.
pub struct FindingRow {
    pub rule: String,
    pub severity: String,
    pub correctness: bool,
    pub confidence: String,
    pub cost_ns: Option<i64>,
    pub title: String,
    pub subject: String,
    pub pid: Option<i32>,
    pub tid: Option<i32>,
    pub comm: Option<String>,
    pub file_id: Option<i64>,
    pub path: Option<String>,
    pub evidence: String,
    pub examples: Vec<i64>,
    pub advice: String,
    pub query: String,
    pub page: String,
    pub caveats: Option<String>,
}
