//! MPI-IO by the ranks of Open MPI, whose calls, offsets and bytes are known.

use fathom_tests::workload::workload_with_mpi;
use fathom_tests::{Record, Scratch, need_program, need_root};

const RANKS: i64 = 4;
/// As in workloads/with_mpi/mpi.c.
const COLLECTIVE: i64 = 8;
const OWN: i64 = 4;
const INTEGERS: i64 = 1024;
const BLOCK: i64 = 4096;
const OWN_AT: i64 = 1 << 20;

#[test]
fn calls_of_all_ranks() {
    need_root!();
    need_program!("mpicc", "mpirun");
    calls_agree(&[]);
}

/// The calls, recorded with further options.
pub(crate) fn calls_agree(options: &[&str]) {
    let scratch = Scratch::new();
    let file = scratch.work().join("shared");
    let ranks = RANKS.to_string();
    let mut command = vec!["mpirun".into()];
    command.extend(["--allow-run-as-root", "--oversubscribe", "-n", &ranks].map(Into::into));
    command.extend([
        workload_with_mpi("mpi").into_os_string(),
        file.into_os_string(),
    ]);
    let recording = Record::new(&scratch)
        .options(["--library", "mpi-io"])
        .options(options)
        .command(command)
        .run()
        .must_exit(0);
    recording.complete();
    let rows = recording.rows(
        "SELECT function, pid, count(*) AS calls, min(file_offset) AS first,
             max(file_offset) AS last, sum(items)::BIGINT AS items, count(*) FILTER (failed) AS failed
         FROM user_calls WHERE function LIKE '%\\_at%' ESCAPE '\\'
         GROUP BY ALL ORDER BY function, first",
    );
    let mut expected = Vec::new();
    for (function, calls, at) in [
        ("MPI_File_read_at", COLLECTIVE, 0),
        ("MPI_File_write_at", OWN, OWN_AT),
        ("MPI_File_write_at_all", COLLECTIVE, 0),
    ] {
        for rank in 0..RANKS {
            let first = at + rank * BLOCK;
            let last = first + (calls - 1) * RANKS * BLOCK;
            expected.push((function, [calls, first, last, calls * INTEGERS, 0]));
        }
    }
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            let numbers = ["calls", "first", "last", "items", "failed"];
            (
                row.text("function").unwrap(),
                numbers.map(|name| row.int(name).unwrap()),
            )
        })
        .collect();
    assert_eq!(found, expected);
    // What the ranks write on their own they write themselves, byte for byte; what they write
    // together is written by those that gather it, all of it once.
    for (function, calls, bytes) in [
        ("MPI_File_write_at", Some(RANKS * OWN), RANKS * OWN * BLOCK),
        (
            "MPI_File_read_at",
            Some(RANKS * COLLECTIVE),
            RANKS * COLLECTIVE * BLOCK,
        ),
        ("MPI_File_write_at_all", None, RANKS * COLLECTIVE * BLOCK),
    ] {
        let made = recording.rows(&format!(
            "SELECT count(*) AS calls, sum(s.bytes)::BIGINT AS bytes
             FROM syscalls s JOIN user_calls u USING (user_call)
             WHERE function = '{function}' AND s.path LIKE '%/shared'"
        ));
        assert_eq!(made[0].int("bytes"), Some(bytes), "{function}");
        match calls {
            Some(calls) => assert_eq!(made[0].int("calls"), Some(calls), "{function}"),
            None => assert!(
                made[0].int("calls") < Some(RANKS * COLLECTIVE),
                "{function}"
            ),
        }
    }
}
