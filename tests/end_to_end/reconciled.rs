//! Table `block` against what the kernel counted of private devices, and what becomes of
//! requests whose end no program saw.
//!
//! `FATHOM_ROUNDS` says how often each file system is loaded and compared, 20 if it is not
//! set.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use fathom_tests::session::meta;
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, skip};

/// A mount namespace of its own, which takes what is mounted with it when it ends.
const APART: [&str; 4] = ["unshare", "--mount", "--propagation", "private"];

/// Rounds of load on a new file system $1 in directory $3, $2 of them. Before and after each
/// the counters of its device are read while the file system is frozen and nothing is on the
/// way.
const ROUNDS: &str = r#"set -e
mount -t tmpfs tmpfs "$3"
truncate -s 400M "$3/image"
force=-f; [ "$1" != ext4 ] || force=-F
"mkfs.$1" -q "$force" "$3/image" > /dev/null
mkdir "$3/mounted"
mount -o loop "$3/image" "$3/mounted"
cd "$3/mounted"
stat=$(readlink -f "/sys/block/$(basename "$(findmnt -no SOURCE .)")")/stat
reading() {
	fsfreeze -f .
	on_the_way=1
	while [ "$on_the_way" != 0 ]; do
		read -r _ _ _ _ _ _ _ _ on_the_way _ < "$stat"
	done
	cat "$stat"
	fsfreeze -u .
}
load() {
	dd if=/dev/zero of="$1" bs=64k count="$2" conv=fsync
	dd if="$1" of=/dev/null bs=4k count=64 iflag=direct
	dd if="$1" iflag=nocache count=0
	dd if="$1" of=/dev/null bs=4k count=128
	dd if=/dev/zero of="$1.direct" bs=4k count=32 oflag=direct,dsync
} 2> /dev/null
reading
round=0
while [ $round -lt "$2" ]; do
	load first 20 &
	load second 33 &
	wait
	rm first second
	[ $((round % 4)) != 3 ] || fstrim .
	reading
	round=$((round + 1))
done
cd /
umount "$3/mounted"
"#;

/// What both sides count: its name, and its fields in the device's file
/// (Documentation/block/stat.rst).
const FIELDS: [(&str, usize); 7] = [
    ("reads", 0),
    ("read_sectors", 2),
    ("writes", 4),
    ("written_sectors", 6),
    ("discards", 11),
    ("discarded_sectors", 13),
    ("flushes", 15),
];

/// Requests of the device that was read, by round.
const REQUESTS: &str = "WITH readings AS (
         SELECT ts_ns, regexp_extract(path, '/block/([^/]+)/stat$', 1) AS device,
             row_number() OVER (ORDER BY ts_ns) AS round,
             lead(ts_ns) OVER (ORDER BY ts_ns) AS until_ns
         FROM syscalls
         WHERE syscall = 'openat' AND comm = 'cat' AND path LIKE '%/block/loop%/stat'),
     requests AS (
         SELECT round, CASE WHEN op IN ('read', 'discard', 'flush') THEN op ELSE 'write' END AS kind,
             bytes // 512 AS sectors, completed_at_ns
         FROM readings r JOIN block b ON b.device = r.device AND op NOT LIKE 'driver%'
             AND coalesce(completed_at_ns, b.ts_ns) BETWEEN r.ts_ns AND until_ns)
     SELECT round, count(*) FILTER (completed_at_ns IS NULL) AS unseen,
         count(*) FILTER (kind = 'read') AS reads,
         coalesce(sum(sectors) FILTER (kind = 'read'), 0) AS read_sectors,
         count(*) FILTER (kind = 'write') AS writes,
         coalesce(sum(sectors) FILTER (kind = 'write'), 0) AS written_sectors,
         count(*) FILTER (kind = 'discard') AS discards,
         coalesce(sum(sectors) FILTER (kind = 'discard'), 0) AS discarded_sectors,
         count(*) FILTER (kind = 'flush') AS flushes
     FROM requests GROUP BY round ORDER BY round";

/// Records `rounds` rounds; of one in `missed` completions the programs know nothing.
fn rounds(scratch: &Scratch, fs_type: &str, rounds: usize, missed: Option<usize>) -> Recording {
    let top = scratch.root().join("top");
    fs::create_dir(&top).unwrap();
    let mut record = Record::new(scratch);
    if let Some(missed) = missed {
        record = record.env("FATHOM_MISS_COMPLETIONS", missed.to_string());
    }
    let recording = record
        .by(APART)
        .command(["sh", "-c", ROUNDS, "script", fs_type])
        .command([rounds.to_string().into(), top.into_os_string()])
        .run()
        .must_exit(0);
    recording.complete();
    recording
}

/// Every round has as many requests and sectors as the kernel counted. Returns of how many
/// the end was not seen.
fn reconcile(recording: &Recording) -> i64 {
    let readings: Vec<Vec<i64>> = recording
        .text()
        .lines()
        .map(|line| {
            line.split_whitespace()
                .map(|n| n.parse().unwrap())
                .collect()
        })
        .collect();
    let rows = recording.rows(REQUESTS);
    assert_eq!(rows.len() + 1, readings.len(), "{rows:?}");
    let mut wrong = String::new();
    for ((row, before), after) in rows.iter().zip(&readings).zip(&readings[1..]) {
        for (name, field) in FIELDS {
            let (seen, counted) = (row.int(name).unwrap(), after[field] - before[field]);
            if seen != counted {
                writeln!(
                    wrong,
                    "{name}: {seen}, the kernel counted {counted}: {row:?}"
                )
                .unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let stored = recording.number("SELECT count(*) FROM block");
    let counts = &meta(&recording.session)["totals"]["layers"];
    assert_eq!(counts["block"].as_i64(), Some(stored));
    rows.iter().map(|row| row.int("unseen").unwrap()).sum()
}

fn agrees(fs_type: &str) {
    let wanted = fathom_tests::rounds(20) as usize;
    let scratch = Scratch::new();
    reconcile(&rounds(&scratch, fs_type, wanted, None));
}

#[test]
fn every_request_under_ext4() {
    need_root!();
    need_program!("unshare", "mkfs.ext4", "findmnt", "fsfreeze", "fstrim");
    agrees("ext4");
}

#[test]
fn every_request_under_xfs() {
    need_root!();
    need_program!("unshare", "mkfs.xfs", "findmnt", "fsfreeze", "fstrim");
    agrees("xfs");
}

#[test]
fn every_request_under_btrfs() {
    need_root!();
    need_program!("unshare", "mkfs.btrfs", "findmnt", "fsfreeze", "fstrim");
    agrees("btrfs");
}

/// A kernel may run no program as a request completes: one that is interrupted by what it
/// looks at is left out, and some kernels run none in the course of some tasks. Such
/// requests have rows, without what was not seen.
#[test]
fn requests_whose_end_no_program_saw() {
    need_root!();
    need_program!("unshare", "mkfs.ext4", "findmnt", "fsfreeze", "fstrim");
    let scratch = Scratch::new();
    let recording = rounds(&scratch, "ext4", 4, Some(7));
    let unseen = reconcile(&recording);
    assert!(unseen > 20, "{unseen}");
    let rows = recording.rows(
        "SELECT count(*) FILTER (dur_ns IS NULL AND error IS NULL AND cpu IS NULL) AS bare,
             count(*) AS n, count(*) FILTER (issued_at_ns IS NOT NULL) AS issued,
             count(*) FILTER (b.bios = 1 AND op = 'read') AS single,
             count(*) FILTER (rid IS NOT NULL) AS caused
         FROM block b WHERE completed_at_ns IS NULL",
    );
    assert_eq!(rows[0].int("bare"), rows[0].int("n"), "{rows:?}");
    assert!(rows[0].int("single").unwrap() > 0, "{rows:?}");
    assert!(rows[0].int("caused").unwrap() > 0, "{rows:?}");
    // Who has no end is in no queue, and took no time.
    let queue = recording.number("SELECT min(in_device) FROM device_queue");
    assert_eq!(queue, 0);
    let told = recording.number("SELECT sum(unseen)::BIGINT FROM by_device");
    assert_eq!(Some(told), rows[0].int("n"));
}

/// Commands that a driver passes to its device have rows.
#[test]
fn commands_of_drivers() {
    need_root!();
    // Reading this asks the device.
    let is_there = |name: &&str| Path::new(&format!("/sys/block/{name}/serial")).exists();
    let Some(disk) = ["vda", "vdb"].into_iter().find(|name| is_there(name)) else {
        skip("no virtio disk");
        return;
    };
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command(["sh", "-c", "cat /sys/block/$0/serial"])
        .command([disk])
        .run()
        .must_exit(0);
    recording.complete();
    let rows = recording.rows(&format!(
        "SELECT count(*) AS n, count(sector) AS sectors, min(error) AS error
         FROM block WHERE device = '{disk}' AND op = 'driver_in'"
    ));
    assert!(rows[0].int("n").unwrap() > 0, "{rows:?}");
    assert_eq!(rows[0].int("sectors"), Some(0), "{rows:?}");
    assert_eq!(rows[0].int("error"), Some(0), "{rows:?}");
}
