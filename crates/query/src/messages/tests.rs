//! The causes of waits, where clocks are not exact.
#![allow(clippy::unwrap_used)]

use fathom_model::set::ErrorStep;

use super::*;

/// A thread of `web` waits twice, the second time until 880, and receives by 1,010 what `db` sends from 1,000 on, as
/// shown.
const TABLES: &str = "
    CREATE TABLE session AS FROM (VALUES ('web', 'a'), ('db', 'b')) AS t(host, boot_id);
    CREATE TABLE flows AS FROM (VALUES
        ('web', 10, 'tcp', '10.0.0.1', 5000, '10.0.0.2', 7000, 1),
        ('db', 20, 'tcp', '10.0.0.2', 7000, '10.0.0.1', 5000, 1)
    ) AS t(host, file_id, protocol, local_address, local_port, remote_address, remote_port, net_ns);
    CREATE TABLE syscalls AS FROM (VALUES
        ('db', 2, 20, 'sendto', 1000::BIGINT, 40::BIGINT, 0::BIGINT, 3::BIGINT),
        ('web', 1, 10, 'recvfrom', 950, 60, 0, 3)
    ) AS t(host, tid, file_id, syscall, ts_ns, dur_ns, file_offset, bytes);
    CREATE TABLE waits AS FROM (VALUES
        ('web', 1, 10::BIGINT, 20::BIGINT, 15::BIGINT, 'network', NULL),
        ('web', 1, 100, 880, 800, NULL, 'softirq:NET_RX')
    ) AS t(host, tid, ts_ns, woken_at_ns, dur_ns, cause, waker);";

/// Starts of the waits that the send of `db` ended, with changes to the tables.
fn caused(changes: &str, web: &MemberClock, db: &MemberClock) -> Vec<i64> {
    let connection = crate::engine::plain();
    connection
        .execute_batch(&crate::relations::macros(0))
        .unwrap();
    connection.execute_batch(TABLES).unwrap();
    connection.execute_batch(changes).unwrap();
    let sql = causes_of_waits([("web", web), ("db", db)]);
    let sql = format!(
        "SELECT ts_ns FROM ({sql}) WHERE host = 'web' AND from_host = 'db' AND from_tid = 2
            AND caused_at_ns = 1040 ORDER BY ts_ns"
    );
    let mut statement = connection.prepare(&sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn off_by(error_ns: Option<i64>) -> MemberClock {
    MemberClock {
        error_ns,
        ..MemberClock::reference()
    }
}

#[test]
fn a_send_after_the_wake_is_its_cause_within_the_error_of_the_clocks() {
    let exact = MemberClock::reference();
    for (web, db, expected) in [
        (Some(0), Some(119), vec![]),
        (Some(0), Some(120), vec![100]),
        (Some(60), Some(60), vec![100]),
        (Some(60), Some(59), vec![]),
        // The wait before is for something else, however inexact the clocks are.
        (Some(0), Some(i64::MAX), vec![100]),
        (Some(i64::MAX), Some(i64::MAX), vec![100]),
        // No bound is known.
        (Some(0), None, vec![]),
    ] {
        let found = caused("", &off_by(web), &off_by(db));
        assert_eq!(found, expected, "{web:?} {db:?}");
    }
    // A send before the wake needs no error.
    let earlier = "UPDATE syscalls SET ts_ns = 870, dur_ns = 170 WHERE host = 'db'";
    assert_eq!(caused(earlier, &exact, &exact), [100]);
    // Without the second wait, the first one is the last.
    let once = "DELETE FROM waits WHERE ts_ns = 100";
    assert_eq!(caused(once, &exact, &off_by(Some(980))), [10]);
    assert_eq!(caused(once, &exact, &off_by(Some(979))), [0; 0]);
}

#[test]
fn the_error_is_that_of_the_time() {
    let mut db = off_by(Some(500));
    let step = |from_ns, error_ns| ErrorStep { from_ns, error_ns };
    for (errors, expected) in [
        (vec![step(0, 119), step(1001, 500)], vec![]),
        (vec![step(0, 119), step(1000, 120)], vec![100]),
        // Before the first step it is the largest one.
        (vec![step(1001, 1)], vec![100]),
    ] {
        db.errors = errors;
        let found = caused("", &MemberClock::reference(), &db);
        assert_eq!(found, expected, "{:?}", db.errors);
    }
}

#[test]
fn one_clock_has_no_error_against_itself() {
    let (web, db) = (off_by(Some(500)), off_by(Some(500)));
    assert_eq!(caused("", &web, &db), [100]);
    assert_eq!(
        caused("UPDATE session SET boot_id = 'a'", &web, &db),
        [0; 0]
    );
    for unknown in ["''", "NULL"] {
        let change = format!("UPDATE session SET boot_id = {unknown}");
        assert_eq!(caused(&change, &web, &db), [100], "{unknown}");
    }
}
