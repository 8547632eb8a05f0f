//! Page faults on mapped files: a workload that knows which pages it touches, and
//! what getrusage counted meanwhile; fio's engine for mapped files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use fathom_tests::session::Row;
use fathom_tests::truth::has_hook;
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, workload};

const PAGE: i64 = 4096;
const PAGES: i64 = 64;
const FLOOD_PAGES: i64 = 1024;

/// One step of the workload.
struct Step {
    start: i64,
    len: i64,
    /// Faults that getrusage counted.
    minor: i64,
    major: i64,
    /// Pages in the order of their touches.
    pages: Vec<i64>,
    rows: Vec<Row>,
}

impl Step {
    /// Rows whose column has a value.
    fn with(&self, column: &str, value: &str) -> i64 {
        let is = |row: &&Row| row.text(column) == Some(value);
        self.rows.iter().filter(is).count() as i64
    }

    fn all(&self, columns: &[(&str, &str)]) {
        for row in &self.rows {
            for (column, value) in columns {
                assert_eq!(row.text(column), Some(*value), "{row:?}");
            }
        }
    }

    fn rows(&self) -> i64 {
        self.rows.len() as i64
    }

    fn faulted(&self) -> Vec<i64> {
        let page = |row: &Row| row.int("file_offset").unwrap() / PAGE;
        self.rows.iter().map(page).collect()
    }
}

/// Runs the workload and returns its steps by name.
fn touch(scratch: &Scratch) -> (Recording, BTreeMap<String, Step>) {
    let recording = Record::new(scratch)
        .command([workload("mapped").as_os_str(), "touch".as_ref()])
        .command([scratch.work()])
        .run()
        .must_exit(0);
    recording.complete();
    let mut steps = BTreeMap::new();
    for line in recording.text().lines() {
        let mut words = line.split(' ');
        let name = words.next().unwrap().to_owned();
        let numbers: Vec<i64> = words.map(|w| w.parse().unwrap()).collect();
        let [start, len, minor, major, ref pages @ ..] = numbers[..] else {
            panic!("{line}");
        };
        steps.insert(
            name,
            Step {
                start,
                len,
                minor,
                major,
                pages: pages.to_vec(),
                rows: Vec::new(),
            },
        );
    }
    for (name, step) in &mut steps {
        // Two steps share a mapping: one reads, one writes.
        let access = match name.as_str() {
            "read" => "access = 'read'",
            "write-after-read" => "access = 'write'",
            _ => "true",
        };
        step.rows = recording.rows(&format!(
            "SELECT f.*, files.file_type, files.fs_type FROM faults f LEFT JOIN files USING (file_id)
             WHERE address >= {} AND address < {} AND {access} ORDER BY ts_ns",
            step.start,
            step.start + step.len
        ));
    }
    (recording, steps)
}

#[test]
fn every_kind_of_mapping() {
    need_root!();
    let scratch = Scratch::new();
    let (recording, steps) = touch(&scratch);
    if has_hook(&recording, "programs for Linux 5.8 and newer") {
        fathom_tests::skip("the programs for this kernel record no page faults");
        return;
    }
    if cfg!(target_arch = "aarch64") && !has_hook(&recording, "fentry/do_mem_abort") {
        fathom_tests::skip("nothing tells when a page fault begins before Linux 6.4 on arm64");
        return;
    }
    let step = |name: &str| &steps[name];
    let work = scratch.work().display().to_string();
    for (name, step) in &steps {
        for row in &step.rows {
            let address = row.int("address").unwrap();
            assert_eq!(
                row.int("file_offset"),
                Some(address - step.start),
                "{row:?}"
            );
            assert!(row.int("dur_ns").unwrap() > 0, "{row:?}");
            assert!(row.text("comm").unwrap().starts_with("mapped"), "{row:?}");
        }
        match name.as_str() {
            "anonymous" | "shared-anonymous" => {
                assert!(step.minor + step.major >= PAGES, "{name}");
                assert_eq!(step.rows(), 0, "{name}");
            }
            "beyond" => assert_eq!((step.minor, step.major), (0, 0)),
            _ => {
                let counted = (step.with("kind", "minor"), step.with("kind", "major"));
                assert_eq!(counted, (step.minor, step.major), "{name}");
                assert!(step.rows() > 0, "{name}");
            }
        }
        // A fault is the first touch of its page, in the order of touches.
        let mut touches = step.pages.iter();
        for page in step.faulted() {
            assert!(touches.any(|p| *p == page), "{name}: page {page}");
        }
    }
    // Each page was cold, and nothing but it was read: one fault each.
    let random = step("read-random");
    random.all(&[("access", "read"), ("cause", "absent"), ("origin", "user")]);
    if random.rows[0].text("fs_type") != Some("tmpfs") {
        assert_eq!(random.faulted(), random.pages);
        assert_eq!(random.with("kind", "major"), PAGES);
    }
    covered(&recording, &random.rows, &random.pages);
    covered(&recording, &step("read").rows, &step("read").pages);
    // Reads map a shared page for reading only where the file system wants to know
    // of writes.
    let rewritten = step("write-after-read");
    if rewritten.rows[0].text("fs_type") == Some("ext4") {
        assert_eq!(rewritten.faulted(), rewritten.pages);
        rewritten.all(&[("cause", "protected"), ("kind", "minor")]);
    }
    for (name, path, mapping) in [
        ("write", format!("{work}/write"), "shared"),
        ("private", format!("{work}/private"), "private"),
        ("deleted", format!("{work}/deleted"), "shared"),
    ] {
        let step = step(name);
        assert_eq!(step.faulted(), step.pages, "{name}");
        step.all(&[
            ("access", "write"),
            ("cause", "absent"),
            ("origin", "user"),
            ("mapping", mapping),
            ("path", &path),
        ]);
    }
    let memfd = step("memfd");
    memfd.all(&[("fs_type", "tmpfs"), ("access", "write")]);
    assert!(memfd.rows[0].text("path").unwrap().contains("memfd:shown"));
    step("kernel").all(&[("origin", "kernel"), ("access", "write")]);
    assert!(step("kernel").faulted().iter().all(|p| *p < 8));
    let exec = step("exec");
    exec.all(&[("access", "exec"), ("mapping", "private")]);
    covered(&recording, &exec.rows, &exec.pages);
    let beyond = step("beyond");
    assert_eq!(beyond.rows(), 1);
    beyond.all(&[("kind", "failed"), ("access", "write")]);
    assert_eq!(beyond.rows[0].int("file_offset"), Some(PAGES * PAGE + 5));

    let twice = recording.number(
        "SELECT count(*) - count(DISTINCT rid) FROM
            (SELECT rid FROM syscalls UNION ALL SELECT rid FROM faults
             UNION ALL SELECT rid FROM writeback)",
    );
    assert_eq!(twice, 0);
}

/// msync names the file that is mapped in its range, and what it makes the kernel
/// write back is attributed to the file and to the call.
#[test]
fn msync_and_write_back() {
    need_root!();
    let scratch = Scratch::new();
    let (recording, steps) = touch(&scratch);
    let path = scratch.work().join("write").display().to_string();
    let calls =
        recording.rows("SELECT path, file_offset, size FROM syscalls WHERE syscall = 'msync'");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].text("path"), Some(path.as_str()));
    assert_eq!(calls[0].int("file_offset"), Some(8 * PAGE));
    if steps["write"].rows[0].text("fs_type") != Some("ext4") {
        return;
    }
    let rows = recording.rows(&format!(
        "SELECT * FROM writeback WHERE path = '{path}' ORDER BY ts_ns"
    ));
    let mut written = BTreeMap::new();
    for row in &rows {
        assert_eq!(row.value("contiguous"), true, "{row:?}");
        let first = row.int("file_offset").unwrap() / PAGE;
        for page in first..first + row.int("bytes").unwrap() / PAGE {
            let by = row.text("syscall").map(str::to_owned);
            assert_eq!(written.insert(page, by), None, "page {page} twice");
        }
    }
    // Every page was made dirty once. Workers of the kernel may come first.
    let pages: Vec<i64> = written.keys().copied().collect();
    assert_eq!(pages, (0..PAGES).collect::<Vec<_>>());
    for (page, by) in &written {
        match by.as_deref() {
            Some("msync") | None => {}
            Some("fsync") => assert!(!(8..24).contains(page), "page {page} is in the range"),
            other => panic!("page {page}: {other:?}"),
        }
    }
}

/// Every page that was touched took a fault or lies in a range that one mapped
/// along, where the kernel tells of such ranges.
fn covered(recording: &Recording, rows: &[Row], pages: &[i64]) {
    if !has_hook(recording, "tp_btf/mm_filemap_map_pages") {
        return;
    }
    let mut mapped = BTreeSet::new();
    for row in rows {
        mapped.insert(row.int("file_offset").unwrap() / PAGE);
        if let (Some(from), Some(bytes)) = (row.int("around_offset"), row.int("around_bytes")) {
            mapped.extend(from / PAGE..(from + bytes) / PAGE);
        }
    }
    for page in pages {
        assert!(mapped.contains(page), "page {page} of {mapped:?}");
    }
}

#[test]
fn faults_that_a_full_ring_drops_are_counted() {
    need_root!();
    let scratch = Scratch::new();
    let rounds = 120;
    let running = Record::new(&scratch)
        .options(["--ring-mib", "1"])
        .command([workload("mapped").as_os_str(), "flood".as_ref()])
        .command([scratch.work()])
        .command([rounds.to_string()])
        .interactive()
        .spawn();
    let recording = running.flooded().must_exit(0);
    recording.balanced();
    let totals = recording.balanced_table("faults", "page_fault");
    assert!(totals.lost > 0, "{totals:?}");
    let path = scratch.work().join("flood").display().to_string();
    let stored = recording.number(&format!(
        "SELECT count(*) FROM faults WHERE path = '{path}' AND access = 'write'"
    ));
    let lost = recording.number(&format!(
        "SELECT coalesce(sum(count), 0)::BIGINT FROM losses JOIN files USING (file_id)
         WHERE syscall = 'page_fault' AND layer = 'pagecache' AND path = '{path}'"
    ));
    assert_eq!(stored + lost, rounds * FLOOD_PAGES);
    let view = recording.rows(&format!("FROM by_mapped_file WHERE path = '{path}'"));
    assert_eq!(view[0].int("faults"), Some(rounds * FLOOD_PAGES));
    assert_eq!(view[0].int("lost"), Some(lost));
    // They are no calls.
    let calls = recording.number("SELECT count(*) FROM by_syscall WHERE syscall = 'page_fault'");
    assert_eq!(calls, 0);
}

#[test]
fn without_the_layer_there_are_none() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--layers", "syscall"])
        .command([workload("mapped").as_os_str(), "touch".as_ref()])
        .command([scratch.work()])
        .run()
        .must_exit(0);
    recording.complete();
    assert_eq!(recording.number("SELECT count(*) FROM faults"), 0);
    let hooks = recording
        .number("SELECT count(*) FROM syscalls WHERE syscall = 'msync' AND path LIKE '%/write'");
    assert_eq!(hooks, 1);
}

/// Filters of calls hold for page faults, too.
#[test]
fn faults_obey_the_filters_of_calls() {
    need_root!();
    let scratch = Scratch::new();
    // Options, and whether there are faults that passed, that failed, and write-back.
    let cases: [(&[&str], bool, bool, bool); 6] = [
        (&["--syscalls", "!read"], true, true, true),
        (&["--syscalls", "openat,msync"], false, false, false),
        (
            &["--syscalls", "openat", "--layers", "all"],
            true,
            true,
            true,
        ),
        (&["--errors-only"], false, true, false),
        (&["--min-duration", "3600s"], false, false, false),
        (&["--min-duration", "1ns"], true, true, true),
    ];
    for (number, (options, passed, failed, written)) in cases.iter().enumerate() {
        let work = scratch.work().join(number.to_string());
        fs::create_dir(&work).unwrap();
        let recording = Record::named(&scratch, &format!("faults-{number}"))
            .options(*options)
            .command([workload("mapped").as_os_str(), "touch".as_ref()])
            .command([&work])
            .run()
            .must_exit(0);
        recording.balanced();
        let below = format!("path LIKE '{}/%'", work.display());
        let count =
            |what: &str| recording.number(&format!("SELECT count(*) FROM {what} AND {below}")) > 0;
        let found = (
            count("faults WHERE kind <> 'failed'"),
            count("faults WHERE kind = 'failed'"),
        );
        assert_eq!(found, (*passed, *failed), "{options:?}");
        let on_disk = recording.number("SELECT count(*) FROM files WHERE fs_type = 'ext4'") > 0;
        if !on_disk && *written {
            continue;
        }
        assert_eq!(count("writeback WHERE true"), *written, "{options:?}");
    }
}

/// A page that fio touched, and whether it wrote it.
type Touch = (i64, bool);

/// Runs fio's engine for mapped files; returns its touches in order.
fn fio(scratch: &Scratch, pattern: &str) -> (Recording, Vec<Touch>, String) {
    let file = scratch.work().join(pattern);
    fs::write(&file, vec![1; 2 << 20]).unwrap();
    // What is dirty would stay in the page cache when fio drops the file from it.
    fs::File::open(&file).unwrap().sync_all().unwrap();
    let log = scratch.root().join(format!("{pattern}.log"));
    let recording = Record::named(scratch, pattern)
        .command(["fio", "--name=job", "--size=2m", "--thread", "--bs=4k"])
        .command(["--ioengine=mmap", "--fallocate=none", "--minimal"])
        .command([
            format!("--rw={pattern}"),
            format!("--filename={}", file.display()),
        ])
        .command([format!("--write_iolog={}", log.display())])
        .run()
        .must_exit(0);
    recording.complete();
    let text = fs::read_to_string(&log).unwrap();
    let mut lines = text.lines();
    let skip = usize::from(lines.next().unwrap().contains("version 3"));
    let mut touches = Vec::new();
    for line in lines {
        let words: Vec<_> = line.split_whitespace().skip(skip).collect();
        if let [_, action @ ("read" | "write"), offset, length] = words[..] {
            let (offset, length): (i64, i64) = (offset.parse().unwrap(), length.parse().unwrap());
            assert_eq!((offset % PAGE, length), (0, PAGE));
            touches.push((offset / PAGE, action == "write"));
        }
    }
    assert_eq!(touches.len(), 512, "{text}");
    (recording, touches, file.display().to_string())
}

fn rows_of(recording: &Recording, path: &str) -> Vec<Row> {
    recording.rows(&format!(
        "SELECT * FROM faults WHERE path = '{path}' AND mapping = 'shared' ORDER BY ts_ns"
    ))
}

#[test]
fn fio_on_mapped_files() {
    need_root!();
    need_program!("fio");
    let scratch = Scratch::new();
    for pattern in [
        "read",
        "write",
        "randread",
        "randwrite",
        "readwrite",
        "randrw",
    ] {
        let (recording, touches, path) = fio(&scratch, pattern);
        let rows = rows_of(&recording, &path);
        let page = |row: &Row| row.int("file_offset").unwrap() / PAGE;
        let wrote = |row: &Row| row.text("access") == Some("write");
        let pages: Vec<i64> = touches.iter().map(|t| t.0).collect();
        covered(&recording, &rows, &pages);
        // Directions: pages that fio wrote have write faults, and no others.
        let written: BTreeSet<i64> = rows.iter().filter(|r| wrote(r)).map(page).collect();
        let writes: BTreeSet<i64> = touches.iter().filter(|t| t.1).map(|t| t.0).collect();
        assert!(written.is_subset(&writes), "{pattern}");
        let disk = recording.number(&format!(
            "SELECT count(*) FROM files WHERE path = '{path}' AND fs_type = 'ext4'"
        ));
        if disk == 0 {
            continue;
        }
        assert_eq!(written, writes, "{pattern}");
        // Of the file nothing was in the page cache. At random fio has nothing read
        // ahead, and writes map nothing along: there each first touch of a page
        // is a fault, in the order and direction of fio's own log.
        if ["read", "readwrite"].contains(&pattern) {
            continue;
        }
        let mut seen = BTreeSet::new();
        let first: Vec<Touch> = touches.into_iter().filter(|t| seen.insert(t.0)).collect();
        let mut seen = BTreeSet::new();
        let faults: Vec<Touch> = rows
            .iter()
            .map(|r| (page(r), wrote(r)))
            .filter(|t| seen.insert(t.0))
            .collect();
        assert_eq!(faults, first, "{pattern}");
    }
}
