//! Sums of tenants: the pyramid's equal the rows', and say whose calls they are by the same processes.

use fathom_model::tables::{
    FileRow, FileRows, ProcessRow, ProcessRows, VolumeClaimRow, VolumeClaimRows,
};
use fathom_query::fetch::rows;
use fathom_query::zoom::{Filter, Tenant, Tenants};

use super::*;

const UNITS: i32 = 3;

/// The processes of [`calls`], in three units in turn. With `again`, the id of one was used
/// again, by a process of another unit.
fn processes(again: bool) -> fathom_model::Batch {
    let mut strings = StringTable::new();
    let mut rows = ProcessRows::default();
    for tid in 100..140 {
        let pid = 100 + (tid - 100) / 4;
        let cgroup = format!("/system.slice/u{}.service", pid % UNITS);
        let mut row = ProcessRow {
            pid,
            tid,
            cgroup: strings.intern(cgroup.as_bytes()),
            started_at_ns: START - 1,
            ..Default::default()
        };
        if again && tid == 100 {
            rows.push(row.clone());
            row.cgroup = strings.intern(b"/system.slice/u0.service");
            row.started_at_ns = START + 50_000_000;
        }
        rows.push(row);
    }
    rows.into_batch(strings)
}

/// Files, every second one on a volume.
fn files(count: i64) -> [fathom_model::Batch; 2] {
    let mut strings = StringTable::new();
    let mut rows = FileRows::default();
    for file_id in 0..count {
        let path = match file_id % 2 {
            0 => format!("/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/pv-1/mount/{file_id}"),
            _ => format!("/data/{file_id}"),
        };
        rows.push(FileRow {
            file_id,
            path: strings.intern(path.as_bytes()),
            ..Default::default()
        });
    }
    let files = rows.into_batch(strings);
    let mut strings = StringTable::new();
    let mut rows = VolumeClaimRows::default();
    rows.push(VolumeClaimRow {
        directory: strings.intern(b"/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/pv-1"),
        namespace: strings.intern(b"shop"),
        claim: strings.intern(b"data-db-0"),
    });
    [files, rows.into_batch(strings)]
}

fn session(dir: &Path, count: i64, again: bool) -> Zoom {
    let mut rng = fastrand::Rng::with_seed(7);
    let calls = calls(&mut rng, 60_000, count);
    let writer = SessionWriter::create(dir, sample::meta(), options()).unwrap();
    writer.append(processes(again)).unwrap();
    for batch in files(count) {
        writer.append(batch).unwrap();
    }
    for (i, chunk) in calls.chunks(700).enumerate() {
        writer
            .append(sample::syscalls(i as i64 * 700, chunk))
            .unwrap();
    }
    let mut meta = sample::meta();
    meta.totals.seen = calls.len() as u64;
    writer.finish(meta).unwrap();
    open(dir)
}

fn filter(zoom: &Zoom, of: Tenant, value: &str, not: bool) -> Filter {
    let mut tenants = Tenants::default();
    tenants.add(of, &[value.to_owned()], not);
    tenants.narrow(zoom.db(), Filter::default()).unwrap()
}

/// Answers with a filter equal the sums of rows for which a condition holds. Returns how many came from blocks.
fn equal(zoom: &Zoom, filter: &Filter, condition: &str) -> usize {
    let mut blocks = 0;
    for by in [By::Nothing, By::Process, By::Thread, By::Syscall, By::File] {
        let request = Request {
            by,
            filter: filter.clone(),
            pixels: 20,
            top: Some(1_000_000),
            latency: true,
            max_rows: Some(0),
            ..Request::default()
        };
        let got = zoom.query(&request).unwrap();
        let rows = expected(zoom.db(), by, &got.window_ns, got.bucket_ns, condition);
        assert!(!rows.is_empty());
        assert_eq!(answer(&got.rows, by), rows, "{by:?} {condition}");
        blocks += usize::from(got.blocks > 0);
    }
    blocks
}

#[test]
fn sums_of_a_unit_come_from_the_pyramid() {
    let dir = tempfile::tempdir().unwrap();
    let zoom = session(dir.path(), 30, false);
    let unit = filter(&zoom, Tenant::Unit, "u1", false);
    assert_eq!(equal(&zoom, &unit, "pid % 3 = 1"), 3);
    let others = filter(&zoom, Tenant::Unit, "u1", true);
    assert_eq!(equal(&zoom, &others, "pid % 3 <> 1"), 3);
    // As the view has them.
    let all = zoom.query(&Request {
        filter: unit,
        pixels: 1,
        ..Request::default()
    });
    let all = all.unwrap();
    let calls = all.rows.column_by_name("calls").unwrap();
    let calls: i64 = calls.as_primitive::<Int64Type>().values().iter().sum();
    let view = "SELECT calls FROM by_unit WHERE unit = 'u1.service'";
    assert_eq!(
        rows(zoom.db(), view, |row| row.int("calls")).unwrap(),
        [calls]
    );
}

#[test]
fn a_process_id_that_was_used_again_is_told_apart_by_rows() {
    let dir = tempfile::tempdir().unwrap();
    let zoom = session(dir.path(), 30, true);
    let first = format!("ts_ns < {}", START + 50_000_000);
    let own = format!("CASE WHEN tid = 100 AND NOT {first} THEN 0 ELSE pid % 3 END");
    let unit = filter(&zoom, Tenant::Unit, "u1", false);
    assert_eq!(equal(&zoom, &unit, &format!("({own}) = 1")), 0);
    let others = filter(&zoom, Tenant::Unit, "u1", true);
    assert_eq!(equal(&zoom, &others, &format!("({own}) <> 1")), 0);
    // The pyramid answers for a unit that it was not in.
    let last = filter(&zoom, Tenant::Unit, "u2", false);
    assert!(equal(&zoom, &last, &format!("({own}) = 2")) > 0);
}

#[test]
fn sums_of_a_volume_are_those_of_its_files() {
    let dir = tempfile::tempdir().unwrap();
    for (name, count, from_blocks) in [("few", 6, 2), ("many", 4_000, 0)] {
        let zoom = session(&dir.path().join(name), count, false);
        for value in [
            "shop/data-db-0",
            "data-db-0",
            "pv-1",
            "kubernetes.io~csi/pv-*",
        ] {
            let volume = filter(&zoom, Tenant::Volume, value, false);
            assert_eq!(
                equal(&zoom, &volume, "file_id % 2 = 0"),
                from_blocks,
                "{value}"
            );
        }
        let others = filter(&zoom, Tenant::Volume, "pv-1", true);
        let none = filter(&zoom, Tenant::Volume, "pv-2", false);
        assert_eq!(equal(&zoom, &others, "coalesce(file_id % 2 <> 0, true)"), 0);
        assert_eq!(zoom.events(0..i64::MAX, &none, 9).unwrap().count(), 0);
    }
}
