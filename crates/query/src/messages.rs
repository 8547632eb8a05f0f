//! Messages between the sessions of a set: TCP sends and the receives of their bytes.
//!
//! Both ends of a connection count its bytes alike, so the send of a received byte is the one that
//! covers its position in the stream, whatever packets it was in. The last byte of a receive was
//! sent by the latest send that it waited for.

use fathom_model::kind::Kind;
use fathom_model::set::MemberClock;
use fathom_model::syscalls::SYSCALLS;

use crate::escape::sql_string;

/// Ends of connections that identify their other end: no two connections of one host with the same
/// addresses one after the other, whose positions would be confused. Each host has a loopback device
/// of its own, so its addresses lead from one session to another only if both are of one start of
/// one kernel and of one network namespace.
const ENDS: &str = "ends AS (
    SELECT host, file_id, net_ns, regexp_replace(local_address, '^::ffff:', '') AS address,
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
    WHERE (NOT regexp_matches(a.address, '^(127\\.|::1$)')
            OR a.net_ns = b.net_ns AND EXISTS (
                FROM session AS s JOIN session AS t USING (boot_id)
                WHERE s.host = a.host AND t.host = b.host))
        -- Both ends of such a connection are on one host, whose inner network others may have, too.
        AND NOT EXISTS (
            FROM ends AS c WHERE c.host = a.host AND a.address = c.to_address AND a.port = c.to_port
                AND a.to_address = c.address AND a.to_port = c.port)
        AND NOT EXISTS (
            FROM ends AS c WHERE c.host = b.host AND b.address = c.to_address AND b.port = c.to_port
                AND b.to_address = c.address AND b.to_port = c.port)
)";

/// Names of the calls of two kinds, for a list in SQL.
fn calls(kinds: [Kind; 2]) -> String {
    let calls = SYSCALLS.iter().filter(|call| kinds.contains(&call.kind));
    let names: Vec<String> = calls.map(|call| format!("'{}'", call.name)).collect();
    names.join(", ")
}

/// A SELECT of the messages between the sessions of a set: rows `from_host, to_host, sent_ns,
/// received_ns, bytes`; `bytes` is the size of the receive.
pub fn between_hosts() -> String {
    format!(
        "WITH {ENDS}, sends AS (
            SELECT p.from_host, p.from_file, s.file_offset AS at, s.bytes, s.ts_ns
            FROM syscalls AS s JOIN pairs AS p ON s.host = p.from_host AND s.file_id = p.from_file
            WHERE s.bytes > 0 AND s.file_offset IS NOT NULL AND s.syscall IN ({})
        ), receives AS (
            SELECT p.*, bounded(s.file_offset::HUGEINT + s.bytes - 1) AS last_byte, s.bytes,
                bounded(s.ts_ns::HUGEINT + s.dur_ns) AS received_ns
            FROM syscalls AS s JOIN pairs AS p ON s.host = p.to_host AND s.file_id = p.to_file
            WHERE s.bytes > 0 AND s.file_offset IS NOT NULL AND s.dur_ns IS NOT NULL
                AND s.syscall IN ({})
        )
        SELECT r.from_host, r.to_host, s.ts_ns AS sent_ns, r.received_ns, r.bytes
        FROM receives AS r
        ASOF JOIN sends AS s ON s.from_host = r.from_host AND s.from_file = r.from_file
            AND s.at <= r.last_byte
        WHERE s.at::HUGEINT + s.bytes > r.last_byte",
        calls([Kind::Send, Kind::Write]),
        calls([Kind::Receive, Kind::Read]),
    )
}

/// A SELECT of the waits for the network that a member of the set ended: rows `host, tid, ts_ns` of
/// the wait, `from_host, from_tid` of the sender, and `caused_at_ns`, when its send ended. `members` are
/// all members with their clocks.
///
/// The wait ended with the first byte of the receive that it was in, or that its thread began next;
/// if that byte's send was recorded, it is the cause. A byte that was sent after the wait had ended is not;
/// but as clocks are off by up to their stated error, its send may be shown that much later. It is then the cause
/// of the last wait before the receive.
pub(crate) fn causes_of_waits<'a>(
    members: impl IntoIterator<Item = (&'a str, &'a MemberClock)>,
) -> String {
    format!(
        "WITH {ENDS}, errors(host, from_ns, error_ns) AS (VALUES {errors}
        ), sends AS (
            SELECT p.from_host, p.from_file, s.tid AS from_tid, s.file_offset AS at, s.bytes,
                s.ts_ns AS sent_ns, bounded(s.ts_ns::HUGEINT + s.dur_ns) AS caused_at_ns
            FROM syscalls AS s JOIN pairs AS p ON s.host = p.from_host AND s.file_id = p.from_file
            WHERE s.bytes > 0 AND s.file_offset IS NOT NULL AND s.dur_ns IS NOT NULL
                AND s.syscall IN ({sends})
        ), receives AS (
            SELECT s.host, s.tid, bounded(s.ts_ns::HUGEINT + s.dur_ns) AS received_ns, s.file_offset AS at, p.from_host,
                p.from_file
            FROM syscalls AS s
            JOIN flows AS f ON f.host = s.host AND f.file_id = s.file_id
            LEFT JOIN pairs AS p ON s.host = p.to_host AND s.file_id = p.to_file
            WHERE s.bytes > 0 AND s.dur_ns IS NOT NULL AND s.syscall IN ({receives})
        ), network AS (
            SELECT host, tid, ts_ns, woken_at_ns, bounded(ts_ns::HUGEINT + dur_ns) AS ended_ns FROM waits
            -- On loopback the waker is the sender's thread, which may be of another session.
            WHERE (cause = 'network' OR starts_with(waker, 'softirq:NET_')) AND woken_at_ns IS NOT NULL
                AND dur_ns IS NOT NULL
        ), received AS (
            SELECT n.host, n.tid, n.ts_ns, n.woken_at_ns, r.at, r.from_host, r.from_file,
                row_number() OVER (PARTITION BY n.host, n.tid, r.received_ns ORDER BY n.ts_ns DESC) = 1 AS is_last
            FROM network AS n ASOF JOIN receives AS r ON r.host = n.host AND r.tid = n.tid
                AND r.received_ns >= n.ended_ns
        ), sent AS (
            SELECT r.*, s.from_tid, s.sent_ns, s.caused_at_ns
            FROM received AS r
            ASOF JOIN sends AS s ON s.from_host = r.from_host AND s.from_file = r.from_file
                AND s.at <= r.at
            WHERE s.at::HUGEINT + s.bytes > r.at
        )
        SELECT s.host, s.tid, s.ts_ns, s.from_host, s.from_tid, s.caused_at_ns
        FROM sent AS s
        JOIN session AS a ON a.host = s.host
        JOIN session AS b ON b.host = s.from_host
        ASOF LEFT JOIN errors AS e ON e.host = s.host AND e.from_ns <= s.woken_at_ns
        ASOF LEFT JOIN errors AS f ON f.host = s.from_host AND f.from_ns <= s.sent_ns
        WHERE s.sent_ns <= s.woken_at_ns
            -- One clock has no error against itself.
            OR s.is_last AND NOT coalesce(a.boot_id = b.boot_id AND a.boot_id <> '', false)
                AND s.sent_ns::HUGEINT - s.woken_at_ns <= e.error_ns::HUGEINT + f.error_ns",
        errors = errors(members),
        sends = calls([Kind::Send, Kind::Write]),
        receives = calls([Kind::Receive, Kind::Read]),
    )
}

/// Rows of (member, time, largest error of times from then on), for VALUES. An error that is not known is null.
fn errors<'a>(members: impl IntoIterator<Item = (&'a str, &'a MemberClock)>) -> String {
    let mut rows = Vec::new();
    for (host, clock) in members {
        let host = sql_string(host);
        let whole = clock
            .error_ns
            .map_or("NULL".to_string(), |ns| ns.to_string());
        rows.push(format!("({host}, ({})::BIGINT, {whole}::BIGINT)", i64::MIN));
        let steps = clock.errors.iter();
        rows.extend(steps.map(|step| format!("({host}, {}, {})", step.from_ns, step.error_ns)));
    }
    rows.join(", ")
}

#[cfg(test)]
mod tests;
