//! Queries to databases in spans: which they are, whatever their values.

use fathom_model::statement::{Dialect, digest_and_literals};

use crate::layers::Span;
use crate::sql;

/// A query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    /// Its text without literals.
    pub(crate) digest: String,
    /// Number of its literals; `None` when the text has none.
    pub(crate) literals: Option<u64>,
    /// Whether it begins, or ends, a transaction.
    pub(crate) begins: bool,
    pub(crate) ends: bool,
    /// Whether it asks for no data: of a session, a cursor, or a channel.
    pub(crate) controls: bool,
}

/// First words of statements that ask for no data.
const CONTROL: &[&str] = &[
    "SET",
    "SHOW",
    "FETCH",
    "MOVE",
    "CLOSE",
    "DECLARE",
    "DEALLOCATE",
    "DISCARD",
    "PREPARE",
    "LISTEN",
    "NOTIFY",
    "UNLISTEN",
    "COPY",
    "SAVEPOINT",
    "RELEASE",
    "USE",
    "RESET",
    "LOCK",
    "EXPLAIN",
    "ANALYZE",
    "VACUUM",
    "CREATE",
    "DROP",
    "ALTER",
    "CALL",
    "PING",
    "QUIT",
    "INIT",
];
/// Commands of Redis that wait, or are about the connection.
const REDIS_CONTROL: &[&str] = &[
    "PING",
    "AUTH",
    "HELLO",
    "SELECT",
    "CLIENT",
    "CONFIG",
    "INFO",
    "COMMAND",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH",
    "UNWATCH",
    "SUBSCRIBE",
    "PSUBSCRIBE",
    "PUBLISH",
    "BLPOP",
    "BRPOP",
    "BLMOVE",
    "BRPOPLPUSH",
    "BZPOPMIN",
    "BZPOPMAX",
    "XREAD",
    "XREADGROUP",
    "WAIT",
    "SCAN",
    "HSCAN",
    "SSCAN",
    "ZSCAN",
    "MONITOR",
    "PSYNC",
    "REPLCONF",
    "QUIT",
];

/// The query that a span is; `None` if it is none.
pub(crate) fn of(span: &Span) -> Option<Query> {
    // Most spans are none: their attributes are not parsed.
    if !span.attributes.contains("\"db.") {
        return None;
    }
    let attributes: serde_json::Value = serde_json::from_str(span.attributes).ok()?;
    let text = |names: [&str; 2]| names.iter().find_map(|name| attributes.get(name)?.as_str());
    let system = text(["db.system.name", "db.system"]).unwrap_or("");
    let statement = text(["db.query.text", "db.statement"]).unwrap_or(span.name);
    query(system, statement)
}

/// The first characters of a text, which take at most `most` bytes.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

fn query(system: &str, statement: &str) -> Option<Query> {
    let dialect = match system {
        "mysql" | "mariadb" => Dialect::Mysql,
        _ => Dialect::Postgresql,
    };
    let (digest, literals) = digest_and_literals(statement.as_bytes(), dialect);
    let mut words = digest
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let first = words.next()?.to_ascii_uppercase();
    let second = words.next().unwrap_or("").to_ascii_uppercase();
    let redis = matches!(system, "redis" | "valkey" | "memcached");
    let begins = !redis && (first == "BEGIN" || first == "START" && second == "TRANSACTION");
    let ends = !redis
        && (matches!(&*first, "COMMIT" | "END" | "ABORT") || first == "ROLLBACK" && second != "TO");
    let control = if redis { REDIS_CONTROL } else { CONTROL };
    Some(Query {
        controls: control.contains(&&*first) || !redis && first == "ROLLBACK" && !ends,
        literals,
        begins,
        ends,
        digest,
    })
}

/// A query in a sentence: as much of it as there is room for.
pub(crate) fn shown(digest: &str, most: usize) -> String {
    match digest.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", digest.get(..end).unwrap_or("")),
        None => digest.to_owned(),
    }
}

/// The condition in SQL that finds the spans of a query: recorded spans have its text as their name.
pub(crate) fn condition(digest: &str) -> String {
    // A text that was cut, and one with literals, is found by its beginning.
    let literal = digest.split('?').next().unwrap_or_default();
    let beginning = sql::quote(beginning(literal, 200));
    format!(
        "(starts_with(name, {beginning}) OR starts_with(attributes->>'$.\"db.query.text\"', {beginning}) \
         OR starts_with(attributes->>'$.\"db.statement\"', {beginning}))"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_other_literals_are_alike() {
        let one = query(
            "postgresql",
            "SELECT  *\nFROM t1 WHERE a = 12 AND b = 'it''s'",
        )
        .unwrap();
        let other = query("postgresql", "SELECT * FROM t1 WHERE a = 7.5e3 AND b = ''").unwrap();
        assert_eq!(one.digest, "SELECT * FROM t1 WHERE a = ? AND b = ?");
        assert_eq!(one.digest, other.digest);
        assert!(one.literals.is_some() && one.literals != other.literals);
        let parameter = query("postgresql", "SELECT * FROM t1 WHERE a = $1 AND b = $2").unwrap();
        assert_eq!((parameter.digest, parameter.literals), (one.digest, None));
        let of = |text| query("mysql", text).unwrap().digest;
        let one = of("SELECT a FROM t WHERE b = \"x'y\" # of user 7");
        assert_eq!(one, of("/* 12 */ SELECT a FROM t WHERE b = 'z'"));
    }

    #[test]
    fn statements_about_transactions_are_none() {
        let of = |text| query("postgresql", text).unwrap();
        assert!(of("BEGIN").begins && of("start  transaction read only").begins);
        assert!(of("COMMIT").ends && of("rollback;").ends);
        assert!(of("ROLLBACK TO SAVEPOINT a").controls && !of("ROLLBACK TO SAVEPOINT a").ends);
        assert!(of("FETCH 100 FROM c").controls && !of("SELECT 1").controls);
        assert!(query("redis", "SELECT").unwrap().controls);
        assert_eq!(query("", " "), None);
    }

    #[test]
    fn any_text_is_digested() {
        for text in [
            "'", "''", "$", "$1", "1", "'é", "é'é", "\u{0}", "a1 'x", "9é",
        ] {
            let Some(Query { digest, .. }) = query("mysql", text) else {
                continue;
            };
            let _ = (shown(&digest, 1), condition(&digest));
        }
        assert_eq!(shown("aéb", 2), "aé…");
    }
}
