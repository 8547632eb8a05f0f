//! Table `findings`: filled by who has diagnosed the session, when a query asks for it.

use duckdb::{Connection, params};
use fathom_model::findings::FindingRow;

/// The statement that creates the table; its comments document it.
pub(crate) const SQL: &str = include_str!("../sql/tables/findings.sql");

/// Whether a query may read table `findings`: then it is to be filled first
/// ([`crate::Db::set_findings`]). A word in a comment or a text is enough.
pub fn names_findings(sql: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    sql.split(|c| !word(c))
        .any(|w| w.eq_ignore_ascii_case("findings"))
}

pub(crate) fn create(connection: &Connection) -> duckdb::Result<()> {
    connection.execute_batch(SQL)
}

/// Replaces the rows of `table`.
pub(crate) fn fill(
    connection: &Connection,
    table: &str,
    rows: &[FindingRow],
) -> duckdb::Result<()> {
    connection.execute_batch(&format!("DELETE FROM {table}"))?;
    let mut statement = connection.prepare(&format!(
        "INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \
         string_split(?, ',')::BIGINT[], ?, ?, ?, ?)",
    ))?;
    for row in rows {
        let examples: Vec<String> = row.examples.iter().map(i64::to_string).collect();
        let examples = (!examples.is_empty()).then(|| examples.join(","));
        statement.execute(params![
            row.rule,
            row.severity,
            row.correctness,
            row.confidence,
            row.cost_ns,
            row.title,
            row.subject,
            row.pid,
            row.tid,
            row.comm,
            row.file_id,
            row.path,
            row.evidence,
            examples,
            row.advice,
            row.query,
            row.page,
            row.caveats,
        ])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::names_findings;

    #[test]
    fn queries_that_read_the_table() {
        for sql in [
            "SELECT * FROM findings",
            "FROM Findings",
            "SELECT 1 FROM \"findings\" f",
            "SELECT(SELECT count(*)FROM findings)",
        ] {
            assert!(names_findings(sql), "{sql}");
        }
        for sql in ["FROM by_file", "SELECT findings_2 FROM x", ""] {
            assert!(!names_findings(sql), "{sql}");
        }
    }
}
