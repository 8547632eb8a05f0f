//! Messages between the sessions of a set: TCP sends and the receives of their bytes.
//!
//! Both ends of a connection count its bytes alike, so the send of a received byte is the one that
//! covers its position in the stream, whatever packets it was in. The last byte of a receive was
//! sent by the latest send that it waited for.

use fathom_model::kind::Kind;
use fathom_model::syscalls::SYSCALLS;
use fathom_query::{Db, QueryError};

use crate::summary::Traffic;

/// Ends of connections that identify their other end: addresses that another host may have, and no
/// two connections of one host with the same addresses one after the other, whose positions would
/// be confused.
const ENDS: &str = "ends AS (
    SELECT host, file_id, regexp_replace(local_address, '^::ffff:', '') AS address,
        local_port AS port, regexp_replace(remote_address, '^::ffff:', '') AS to_address,
        remote_port AS to_port
    FROM flows
    WHERE protocol = 'tcp' AND remote_address IS NOT NULL AND local_address IS NOT NULL
    QUALIFY count(*) OVER (PARTITION BY host, address, port, to_address, to_port) = 1
), pairs AS (
    SELECT a.host AS from_host, a.file_id AS from_file, b.host AS to_host, b.file_id AS to_file
    FROM ends AS a
    JOIN ends AS b ON a.host <> b.host AND a.address = b.to_address AND a.port = b.to_port
        AND a.to_address = b.address AND a.to_port = b.port
    WHERE NOT regexp_matches(a.address, '^(127\\.|::1$)')
)";

/// The messages between hosts, as rows `from_host, to_host, sent_ns, received_ns, bytes`; `bytes`
/// are those of the receive.
fn messages_sql() -> String {
    let names = |kinds: [Kind; 2]| {
        let calls = SYSCALLS.iter().filter(|call| kinds.contains(&call.kind));
        let names: Vec<String> = calls.map(|call| format!("'{}'", call.name)).collect();
        names.join(", ")
    };
    format!(
        "WITH {ENDS}, sends AS (
            SELECT p.from_host, p.from_file, s.file_offset AS at, s.bytes, s.ts_ns
            FROM syscalls AS s JOIN pairs AS p ON s.host = p.from_host AND s.file_id = p.from_file
            WHERE s.bytes > 0 AND s.file_offset IS NOT NULL AND s.syscall IN ({})
        ), receives AS (
            SELECT p.*, s.file_offset + s.bytes - 1 AS last_byte, s.bytes,
                s.ts_ns + s.dur_ns AS received_ns
            FROM syscalls AS s JOIN pairs AS p ON s.host = p.to_host AND s.file_id = p.to_file
            WHERE s.bytes > 0 AND s.file_offset IS NOT NULL AND s.dur_ns IS NOT NULL
                AND s.syscall IN ({})
        )
        SELECT r.from_host, r.to_host, s.ts_ns AS sent_ns, r.received_ns, r.bytes
        FROM receives AS r
        ASOF JOIN sends AS s ON s.from_host = r.from_host AND s.from_file = r.from_file
            AND s.at <= r.last_byte
        WHERE s.at + s.bytes > r.last_byte",
        names([Kind::Send, Kind::Write]),
        names([Kind::Receive, Kind::Read]),
    )
}

/// Gives `take` each message: sender, receiver, and the two times.
pub(crate) fn each(db: &Db, mut take: impl FnMut(&str, &str, i64, i64)) -> Result<(), QueryError> {
    fathom_query::fetch::rows(db, &messages_sql(), |row| {
        let (from, to) = (row.text("from_host")?, row.text("to_host")?);
        take(&from, &to, row.int("sent_ns")?, row.int("received_ns")?);
        Ok(())
    })?;
    Ok(())
}

/// Messages between the hosts of an opened set.
///
/// # Errors
/// The errors of [`Db::run`].
pub(crate) fn traffic(db: &Db) -> Result<Vec<Traffic>, QueryError> {
    let sql = format!(
        "SELECT from_host, to_host, count(*) AS messages, sum(bytes)::BIGINT AS bytes,
            min(received_ns - sent_ns) AS fastest_ns,
            count(*) FILTER (received_ns < sent_ns) AS before_sent
        FROM ({}) GROUP BY ALL ORDER BY ALL",
        messages_sql()
    );
    fathom_query::fetch::rows(db, &sql, |row| {
        let count = |name| Ok::<_, QueryError>(u64::try_from(row.int(name)?).unwrap_or(0));
        Ok(Traffic {
            from: row.text("from_host")?,
            to: row.text("to_host")?,
            messages: count("messages")?,
            bytes: count("bytes")?,
            fastest_ns: row.int("fastest_ns")?,
            before_sent: count("before_sent")?,
        })
    })
}
