//! The layers below the calls: requests to devices against the kernel's own counters,
//! who is blamed for them, and that the time of a request adds up.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::process::Command;

use fathom_model::layers::{Layer, LayerSet};
use fathom_tests::environment::{fathom, must_run};
use fathom_tests::session::{meta, report};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, skip};

use crate::kernel::release;

/// A mount namespace of its own, which takes what is mounted with it when it ends.
const APART: [&str; 4] = ["unshare", "--mount", "--propagation", "private"];

/// Every kind of request, on the file system in image $1 mounted at $2. The counters of
/// the device are read before and after, and both readings are in the recording.
const EVERY_KIND: &str = r#"set -e
mount -o loop "$1" "$2"
stat=$(readlink -f "/sys/block/$(basename "$(findmnt -no SOURCE "$2")")")/stat
run() { fio --output=/dev/null --size=4M --bs=4k --number_ios=100 "$@"; }
sync -f "$2"; cat "$stat"
run --name=write --directory="$2" --rw=write --bs=64k --fsync=8
file=$2/write.0.0
run --name=direct --filename="$file" --rw=randread --direct=1 --ioengine=psync
run --name=uring --filename="$file" --rw=randread --direct=1 --ioengine=io_uring --iodepth=8
run --name=aio --filename="$file" --rw=randrw --direct=1 --ioengine=libaio --iodepth=8
run --name=cold --filename="$file" --rw=read --invalidate=1 --ioengine=psync
run --name=warm --filename="$file" --rw=read --invalidate=0 --ioengine=psync
run --name=mapped --filename="$file" --rw=randread --ioengine=mmap
dd if=/dev/zero of="$2/lazy" bs=4k count=64 2> /dev/null
sync -f "$2"
cat "$stat"
umount "$2"
"#;

/// Records the script on a new file system.
fn record(scratch: &Scratch, fs_type: &str, script: &str) -> Recording {
    let image = scratch.root().join("image");
    File::create(&image).unwrap().set_len(400 << 20).unwrap();
    let force = if fs_type == "ext4" { "-F" } else { "-f" };
    let make = format!("mkfs.{fs_type}");
    must_run(make, ["-q".as_ref(), force.as_ref(), image.as_os_str()]);
    let mounted = scratch.root().join("mounted");
    fs::create_dir(&mounted).unwrap();
    let recording = Record::new(scratch)
        .by(APART)
        .options(["--layers", "all"])
        .command(["sh", "-c", script, "script"])
        .command([image, mounted])
        .run()
        .must_exit(0);
    recording.complete();
    recording
}

/// The time of every request adds up, and every record is stored.
pub(crate) fn adds_up(recording: &Recording) {
    let wrong = recording.rows(
        "WITH own AS (SELECT rid, sum(self_ns) AS own_ns FROM all_slices GROUP BY rid),
         requests AS (SELECT rid, dur_ns FROM syscalls UNION ALL
             SELECT rid, dur_ns FROM faults WHERE dur_ns IS NOT NULL)
         SELECT count(*) AS requests, count(*) FILTER (own_ns IS DISTINCT FROM dur_ns) AS wrong
         FROM requests LEFT JOIN own USING (rid)",
    );
    assert!(wrong[0].int("requests").unwrap() > 0, "{wrong:?}");
    assert_eq!(wrong[0].int("wrong"), Some(0), "{wrong:?}");
    let twice =
        "SELECT count(*) AS n FROM (SELECT rid FROM syscalls UNION ALL SELECT rid FROM faults
         UNION ALL SELECT rid FROM writeback) GROUP BY rid HAVING n > 1";
    assert!(
        recording.rows(twice).is_empty(),
        "a rid stands for two requests"
    );
    let counts = &meta(&recording.session)["totals"]["layers"];
    assert_eq!(counts["lost"], 0);
    for table in ["block", "waits", "irqs", "pagecache"] {
        let rows = recording.rows(&format!("SELECT count(*) AS n FROM {table}"));
        assert_eq!(rows[0].int("n"), counts[table].as_i64(), "{table}");
    }
}

fn counters_agree(fs_type: &str) {
    let scratch = Scratch::new();
    let recording = record(&scratch, fs_type, EVERY_KIND);
    let text = recording.text();
    let mut readings = text.lines().map(|line| {
        let numbers = line.split_whitespace().map(|w| w.parse().unwrap());
        numbers.collect::<Vec<i64>>()
    });
    let (before, after) = (readings.next().unwrap(), readings.next().unwrap());
    let grown = |field: usize| after[field] - before[field];
    // Between the two readings, on the device whose counters they are.
    let rows = recording.rows(
        "WITH readings AS (
             SELECT regexp_extract(path, '/block/([^/]+)/stat$', 1) AS device,
                 min(ts_ns) AS begin_ns, max(ts_ns) AS ended_at_ns
             FROM syscalls WHERE syscall = 'openat' AND path LIKE '%/block/%/stat' GROUP BY 1)
         SELECT count(*) FILTER (op = 'read') AS reads, count(*) FILTER (op = 'write') AS writes,
             count(*) FILTER (op = 'flush') AS flushes,
             count(*) FILTER (op = 'discard') AS discards,
             coalesce(sum(bytes) FILTER (op = 'read'), 0) // 512 AS read_sectors,
             coalesce(sum(bytes) FILTER (op = 'write'), 0) // 512 AS written_sectors,
             coalesce(sum(bytes) FILTER (op = 'discard'), 0) // 512 AS discarded_sectors,
             count(*) FILTER (issued_at_ns IS NULL) AS not_issued,
             count(*) FILTER (coalesce(queued_at_ns, 0) > issued_at_ns OR issued_at_ns > completed_at_ns)
                 AS backwards
         FROM block JOIN readings USING (device)
         WHERE coalesce(completed_at_ns, ts_ns) BETWEEN begin_ns AND ended_at_ns",
    );
    // Documentation/block/stat.rst
    for (name, field) in [
        ("reads", 0),
        ("read_sectors", 2),
        ("writes", 4),
        ("written_sectors", 6),
        ("discards", 11),
        ("discarded_sectors", 13),
        ("flushes", 15),
    ] {
        assert_eq!(rows[0].int(name), Some(grown(field)), "{name}: {rows:?}");
    }
    assert_eq!(rows[0].int("backwards"), Some(0), "{rows:?}");
    adds_up(&recording);
    blamed(&recording);
    depths(&recording);
    cached(&recording);
    functions(&recording, fs_type);
}

fn hook(recording: &Recording, name: &str) -> Option<bool> {
    let hooks = meta(&recording.session)["hooks"].clone();
    let found = hooks.as_array().unwrap().iter();
    let found = found.filter(|hook| hook["name"] == name);
    found.map(|hook| hook["attached"] == true).next()
}

/// Where programs can hook functions, each read passes through VFS, the file system, and
/// the page cache or direct I/O, one in the other. Elsewhere it is said what is missing.
fn functions(recording: &Recording, fs_type: &str) {
    if let Some(attached) = hook(recording, "layer vfs") {
        assert!(!attached);
        let rows = recording.rows("SELECT count(*) AS n FROM slices WHERE layer = 'vfs'");
        assert_eq!(rows[0].int("n"), Some(0));
        return;
    }
    assert_eq!(hook(recording, "fentry/vfs_read"), Some(true));
    let own = format!("{fs_type}_file_read_iter");
    if hook(recording, &format!("fentry/{own}")) != Some(true) {
        // A module whose types this kernel does not tell.
        return;
    }
    let rows = recording.rows(&format!(
        "WITH parts AS (
             SELECT rid, max(depth) FILTER (name = 'vfs_read') AS vfs,
                 max(depth) FILTER (name = '{own}') AS fs,
                 max(depth) FILTER (name = 'filemap_read') AS cache,
                 max(depth) FILTER (name = 'iomap_dio_rw') AS direct
             FROM slices GROUP BY rid)
         SELECT count(*) AS reads, count(*) FILTER (vfs = 1) AS vfs,
             count(*) FILTER (fs = vfs + 1) AS fs,
             count(*) FILTER (cache = fs + 1) AS cache,
             count(*) FILTER (direct = fs + 1) AS direct
         FROM syscalls LEFT JOIN parts USING (rid)
         WHERE syscall = 'pread64' AND path LIKE '%/write.0.0' AND bytes > 0"
    ));
    let reads = rows[0].int("reads").unwrap();
    assert!(reads >= 300, "{rows:?}");
    assert_eq!(rows[0].int("vfs"), Some(reads), "{rows:?}");
    assert_eq!(rows[0].int("fs"), Some(reads), "{rows:?}");
    assert!(rows[0].int("cache").unwrap() >= 200, "{rows:?}");
    if hook(recording, "tp_btf/iomap_dio_complete") == Some(true) {
        assert!(rows[0].int("direct").unwrap() >= 100, "{rows:?}");
    }
}

/// A device has no more requests than those that were given to it and had not completed:
/// the device of the recording, which others do not use, so that none is left at its end. One
/// whose end was not seen is in the device until that is noticed.
fn depths(recording: &Recording) {
    let rows = recording.rows(
        "SELECT device, max(queue_depth) AS told, (
             SELECT max(in_device) FROM device_queue q WHERE q.device = b.device
         ) AS most
         FROM block b SEMI JOIN (
             SELECT device FROM block WHERE device LIKE 'loop%'
             GROUP BY device HAVING count(rid) > 0 AND count(completed_at_ns) = count(*)
         ) USING (device)
         GROUP BY device HAVING told > most",
    );
    assert!(rows.is_empty(), "{rows:?}");
    // The report has the same queues, in windows.
    let report = report(&recording.session);
    let queues = report["layers"]["queues"].as_array().unwrap();
    assert!(!queues.is_empty());
    for queue in queues {
        let device = queue["device"].as_str().unwrap();
        let whole = recording.rows(&format!(
            "SELECT max(in_device)::BIGINT AS most, sum(in_device * (until_ns - ts_ns))::BIGINT AS area
             FROM (SELECT *, lead(ts_ns) OVER (ORDER BY ts_ns) AS until_ns
                 FROM device_queue WHERE device = '{device}')
             WHERE until_ns > ts_ns"
        ));
        assert_eq!(queue["max_depth"].as_i64(), whole[0].int("most"), "{queue}");
        let depths = queue["depths"].as_array().unwrap().iter();
        let sum: i64 = depths.map(|depth| depth.as_i64().unwrap()).sum();
        let window = queue["window_ns"].as_i64().unwrap();
        let (area, told) = (whole[0].int("area").unwrap(), sum * window / 1000);
        // Each is rounded to thousandths.
        let rounded = window * 24 / 1000;
        assert!(
            (told - area).abs() <= rounded,
            "{told} is not {area}: {queue}"
        );
    }
}

/// Requests to the device name the requests that fio says it made.
fn blamed(recording: &Recording) {
    let count = |sql: &str| recording.rows(sql)[0].int("n").unwrap();
    // Some of btrfs's go by way of the page cache, but all to the device.
    for syscall in ["IORING_OP_READ", "IOCB_CMD_PREAD", "IOCB_CMD_PWRITE"] {
        let asked = count(&format!(
            "SELECT count(*) AS n FROM syscalls WHERE syscall = '{syscall}' AND bytes > 0"
        ));
        let read = count(&format!(
            "SELECT count(DISTINCT rid) AS n FROM bios JOIN syscalls USING (rid)
             WHERE syscall = '{syscall}'"
        ));
        assert!(asked > 20, "{syscall}: {asked}");
        // A write may leave its pages to the page cache.
        if syscall != "IOCB_CMD_PWRITE" {
            assert_eq!(read, asked, "{syscall}");
        }
    }
    let direct = count(
        "SELECT count(DISTINCT rid) AS n FROM bios JOIN syscalls USING (rid)
         WHERE syscall = 'pread64' AND submit_rid = rid",
    );
    assert!(direct >= 100, "{direct}");
    // dd dirties; others write it back.
    let lazy = recording.rows(
        "SELECT coalesce(sum(x.bytes), 0) AS bytes, count(*) FILTER (s.syscall <> 'write') AS others,
             count(*) FILTER (x.submit_rid = x.rid) AS own
         FROM bios x JOIN syscalls s USING (rid)
         WHERE x.origin = 'writeback' AND x.path LIKE '%/lazy'",
    );
    assert_eq!(lazy[0].int("bytes"), Some(64 * 4096), "{lazy:?}");
    assert_eq!(lazy[0].int("others"), Some(0), "{lazy:?}");
    assert_eq!(lazy[0].int("own"), Some(0), "{lazy:?}");
}

/// The page cache answers what was read before, and nothing that was thrown out.
fn cached(recording: &Recording) {
    let rows = recording.rows(
        "SELECT count(*) AS calls, sum(pages) AS pages, sum(hits) AS hits, sum(misses) AS misses,
             sum(readahead_pages) AS ahead, min(ts) AS ts
         FROM (SELECT p.*, s.pid, s.ts_ns AS ts FROM pagecache p JOIN syscalls s USING (rid)
             WHERE p.pages IS NOT NULL AND s.syscall = 'pread64' AND s.path LIKE '%/write.0.0')
         GROUP BY pid HAVING calls = 100 ORDER BY ts",
    );
    let [cold, warm] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    for run in [cold, warm] {
        assert_eq!(run.int("calls"), Some(100), "{rows:?}");
        assert_eq!(run.int("pages"), Some(100), "{rows:?}");
    }
    assert!(cold.int("misses").unwrap() > 0, "{rows:?}");
    assert!(cold.int("ahead").unwrap() > 0, "{rows:?}");
    assert_eq!(warm.int("hits"), Some(100), "{rows:?}");
}

/// Records a script that works in the scratch's directory.
fn python(scratch: &Scratch, script: &str) -> Recording {
    let script = format!("import os\nos.chdir({:?})\n{script}", scratch.work());
    let recording = Record::new(scratch)
        .command(["python3", "-c", &script])
        .run()
        .must_exit(0);
    recording.complete();
    recording
}

/// What a call did in the page cache stands in its slot, or in its wide record where a number
/// is too large for that, with the number of its segments either way.
#[test]
fn numbers_that_fit_no_slot() {
    need_root!();
    need_program!("python3");
    let scratch = Scratch::new();
    let script = "import os, mmap\n\
        fd = os.open('large', os.O_RDWR | os.O_CREAT)\n\
        memory = mmap.mmap(-1, 66000 * 4096)\n\
        os.write(fd, memory)\n\
        os.preadv(fd, [memory], 0)\n\
        os.preadv(fd, [memoryview(memory)[:4096], memoryview(memory)[4096:8192]], 4096)\n";
    let recording = python(&scratch, script);
    let rows = recording.rows(
        "SELECT file_offset, size, args, cache_pages, cache_misses, added_pages FROM syscalls
         WHERE path LIKE '%/large' AND bytes > 0 ORDER BY ts_ns",
    );
    let [written, whole, two] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert_eq!(written.int("added_pages"), Some(66_000));
    for (row, offset, pages, segments) in [(whole, 0, 66_000, 1), (two, 4096, 2, 2)] {
        assert_eq!(row.int("file_offset"), Some(offset), "{row:?}");
        assert_eq!(row.int("size"), Some(pages * 4096), "{row:?}");
        assert_eq!(row.int("cache_pages"), Some(pages), "{row:?}");
        assert_eq!(row.int("cache_misses"), Some(0), "{row:?}");
        let args = row.text("args").unwrap();
        assert!(args.contains(&format!("iovcnt={segments}")), "{row:?}");
    }
    let counts = &meta(&recording.session)["totals"]["layers"];
    let rows = recording.rows("SELECT count(*) AS n FROM pagecache");
    assert_eq!(rows[0].int("n"), counts["pagecache"].as_i64());
}

/// The pages of the file that sendfile() writes are not misses of the one that it reads.
#[test]
fn pages_of_two_files_are_told_apart() {
    need_root!();
    need_program!("python3");
    if release() < (6, 11) {
        skip("this kernel does not show which pages a call looks up");
        return;
    }
    let scratch = Scratch::new();
    let script = "import os\n\
        warm = os.open('warm', os.O_RDWR | os.O_CREAT)\n\
        os.write(warm, os.urandom(1 << 20))\n\
        hole = os.open('hole', os.O_RDWR | os.O_CREAT)\n\
        os.truncate('hole', 1 << 20)\n\
        for fd in [warm, hole]:\n\
        \x20   copy = os.open(f'copy{fd}', os.O_WRONLY | os.O_CREAT)\n\
        \x20   assert os.sendfile(copy, fd, 0, 1 << 20) == 1 << 20\n";
    let recording = python(&scratch, script);
    let rows = recording.rows(
        "SELECT pages, hits, misses, p.added_pages AS added FROM pagecache p JOIN syscalls s USING (rid)
         WHERE s.syscall = 'sendfile' ORDER BY s.ts_ns",
    );
    let numbers: Vec<_> = rows
        .iter()
        .map(|row| ["pages", "hits", "misses", "added"].map(|column| row.int(column).unwrap()))
        .collect();
    assert_eq!(numbers, [[256, 256, 0, 256], [256, 0, 256, 256]]);
}

/// Pages that were read ahead are told apart by whether anybody read them later.
#[test]
fn readahead_is_used_or_wasted() {
    need_root!();
    need_program!("dd", "fincore");
    let scratch = Scratch::new();
    let file = scratch.work().join("data");
    fs::write(&file, vec![7; 16 << 20]).unwrap();
    File::open(&file).unwrap().sync_all().unwrap();
    let script = "dd if=\"$0\" iflag=nocache count=0 && dd if=\"$0\" of=/dev/null bs=4k count=300 && \
        dd if=\"$0\" of=/dev/null bs=4k count=100 skip=200 && \
        dd if=\"$0\" of=/dev/null bs=4k count=3 skip=3000";
    let recording = Record::new(&scratch)
        .command(["sh", "-c", script])
        .command([&file])
        .run()
        .must_exit(0);
    recording.complete();
    let sums = recording.rows(
        "SELECT coalesce(sum(bytes), 0)::BIGINT AS all_bytes, coalesce(sum(used_bytes), 0)::BIGINT AS used,
             coalesce(sum(wasted_bytes), 0)::BIGINT AS wasted
         FROM readahead WHERE path LIKE '%/data'",
    );
    let (all, used) = (sums[0].int("all_bytes"), sums[0].int("used"));
    if all == Some(0) {
        fathom_tests::skip("nothing is read ahead here: the directory lies on no device");
        return;
    }
    // Each byte that dd read for the first time came so; those that it read again count once.
    assert_eq!(used, Some(303 * 4096), "{sums:?}");
    assert_eq!(all.unwrap() - used.unwrap(), sums[0].int("wasted").unwrap());
    let options = ["--bytes", "--noheadings", "--output", "RES"].map(OsStr::new);
    let cached = must_run("fincore", options.into_iter().chain([file.as_os_str()]));
    let cached: i64 = String::from_utf8(cached).unwrap().trim().parse().unwrap();
    assert!(all.unwrap() >= cached, "{sums:?} {cached}");
    assert!(sums[0].int("wasted").unwrap() > 0, "{sums:?}");
    let report = report(&recording.session);
    let file_path = scratch.work().join("data");
    let mut files = report["layers"]["read_ahead"].as_array().unwrap().iter();
    let own = files.find(|file| file["path"].as_str() == file_path.to_str());
    let own = own.unwrap_or_else(|| panic!("{}", report["layers"]["read_ahead"]));
    assert_eq!(own["used_bytes"].as_i64(), used);
    assert_eq!(own["wasted_bytes"].as_i64(), sums[0].int("wasted"));
}

#[test]
fn requests_to_a_device_under_ext4() {
    need_root!();
    need_program!("unshare", "mkfs.ext4", "fio", "findmnt");
    counters_agree("ext4");
}

#[test]
fn requests_to_a_device_under_xfs() {
    need_root!();
    need_program!("unshare", "mkfs.xfs", "fio", "findmnt");
    counters_agree("xfs");
}

#[test]
fn requests_to_a_device_under_btrfs() {
    need_root!();
    need_program!("unshare", "mkfs.btrfs", "fio", "findmnt");
    counters_agree("btrfs");
}

/// A thread that waits in a call is told from one that could run, and so is who woke it.
#[test]
fn waits_have_a_waker() {
    need_root!();
    need_program!("fio");
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command(["fio", "--output=/dev/null", "--name=sync", "--rw=write"])
        .command(["--bs=64k", "--size=2M", "--fsync=1", "--ioengine=psync"])
        .command([format!("--directory={}", scratch.work().display())])
        .run()
        .must_exit(0);
    recording.complete();
    adds_up(&recording);
    let rows = recording.rows(
        "SELECT count(*) AS n FROM waits WHERE dur_ns < 0 OR run_queue_ns < 0 OR run_queue_ns > dur_ns
             OR (reason = 'cpu' AND woken_at_ns IS NOT NULL) OR waker = ''",
    );
    assert_eq!(rows[0].int("n"), Some(0));
    // Waits of a call lie in it.
    let outside = recording.rows(
        "SELECT count(*) AS n FROM waits w JOIN syscalls s USING (rid)
         WHERE w.ts_ns < s.ts_ns OR w.ts_ns + w.dur_ns > s.ts_ns + s.dur_ns OR w.tid <> s.tid",
    );
    assert_eq!(outside[0].int("n"), Some(0));
}

/// The builds for older kernels see the same on every newer one that does not preempt
/// programs.
#[test]
fn programs_for_older_kernels_see_the_layers() {
    need_root!();
    need_program!("fio");
    let doctor = Command::new(fathom()).arg("doctor").output().unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    if !doctor.contains("programs for Linux 6.13") || crate::kernel::release() >= (7, 0) {
        fathom_tests::skip("the programs for older kernels are used on those");
        return;
    }
    for programs in ["6.2", "5.17", "5.8"] {
        let scratch = Scratch::new();
        let recording = Record::new(&scratch)
            .env("FATHOM_PROGRAMS", programs)
            .command(["fio", "--output=/dev/null", "--name=read", "--rw=randread"])
            .command(["--bs=4k", "--size=2M", "--number_ios=200", "--direct=1"])
            .command([format!("--directory={}", scratch.work().display())])
            .run()
            .must_exit(0);
        recording.complete();
        adds_up(&recording);
        let hooks = meta(&recording.session)["hooks"].clone();
        let chosen = format!("programs for Linux {programs} and newer");
        assert_eq!(hooks[0]["name"], chosen.as_str());
        let rows = recording.rows(
            "SELECT count(*) AS reads, (SELECT count(DISTINCT rid) FROM waits) AS waits,
                 (SELECT count(*) FROM bios SEMI JOIN syscalls USING (rid)
                  WHERE origin = 'call' AND submit_rid = rid) AS bios,
                 (SELECT count(*) FROM block WHERE rid IS NOT NULL AND op = 'read'
                  AND (issued_at_ns IS NULL OR issued_at_ns > completed_at_ns)) AS untimed
             FROM syscalls WHERE syscall IN ('read', 'pread64') AND path LIKE '%/read.0.0'
                 AND bytes = 4096",
        );
        assert!(rows[0].int("reads").unwrap() >= 200, "{programs}: {rows:?}");
        assert!(rows[0].int("waits").unwrap() > 0, "{programs}: {rows:?}");
        assert_eq!(rows[0].int("untimed"), Some(0), "{programs}: {rows:?}");
        if recording.number("SELECT count(*) FROM slices WHERE layer = 'device'") > 0 {
            assert!(rows[0].int("bios").unwrap() >= 200, "{programs}: {rows:?}");
        }
    }
}

#[test]
fn layers_that_were_not_asked_for() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--layers", "syscall"])
        .command(["cat", "/etc/passwd"])
        .run()
        .must_exit(0);
    recording.complete();
    for table in [
        "block",
        "bios",
        "waits",
        "irqs",
        "pagecache",
        "slices",
        "faults",
    ] {
        let rows = recording.rows(&format!("SELECT count(*) AS n FROM {table}"));
        assert_eq!(rows[0].int("n"), Some(0), "{table}");
    }
    adds_up(&recording);
}

#[test]
fn layers_that_cannot_be_had() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--layers", "syscall,vfs"])
        .command(["cat", "/etc/passwd"])
        .run()
        .must_exit(0);
    recording.complete();
    let said = recording.stderr.contains("fathom: --layers vfs: ");
    assert_eq!(
        said,
        hook(&recording, "layer vfs").is_some(),
        "{}",
        recording.stderr
    );
}

#[test]
fn a_session_says_of_each_layer_whether_it_was_recorded() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--layers", "block"])
        .command(["true"])
        .run()
        .must_exit(0);
    let meta = meta(&recording.session);
    let layers = meta["layers"].as_array().expect("layers");
    let told: Vec<_> = layers
        .iter()
        .map(|layer| (layer["name"].as_str().unwrap(), layer["recorded"] == true))
        .collect();
    // Whether or not anything of it took place.
    let recorded = |name: &str| name == "syscall" || name == "block";
    let names = LayerSet::chosen().iter().map(Layer::name);
    let expected: Vec<_> = names.map(|name| (name, recorded(name))).collect();
    assert_eq!(told, expected);
    for layer in layers {
        let name = layer["name"].as_str().unwrap();
        let reason = layer["reason"].as_str().unwrap();
        let expected = match recorded(name) {
            true => String::new(),
            false => format!("it was not selected: --layers {name}"),
        };
        assert_eq!(reason, expected);
    }
}

/// Serves a file of 64 KiB over FUSE at `argv[1]`, writes what it is asked to `argv[2]`, a line with
/// the number of the operation and the thread that waits for it, and reads the file.
const FUSE: &str = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40755,user_id=0,group_id=0"
if libc.mount(b"truth", sys.argv[1].encode(), b"fuse", 0, options.encode()):
    raise OSError(ctypes.get_errno(), "mount")
client = os.fork()
if not client:
    os.close(fuse)
    path = sys.argv[1] + "/file"
    assert len(open(path, "rb").read()) == 65536
    assert os.stat(path).st_size == 65536
    assert not os.path.exists(sys.argv[1] + "/none")
    libc.umount2(sys.argv[1].encode(), 0)
    os._exit(0)
log = open(sys.argv[2], "w")
LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, FORGETS = 1, 2, 3, 14, 15, 18, 25, 26, 42
def attributes(node):
    mode, size = (0o40755, 0) if node == 1 else (0o100644, 65536)
    return struct.pack("<QQQQQQ10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
while True:
    try:
        request = os.read(fuse, 1 << 20)
    except OSError:
        break
    length, operation, unique, node, uid, gid, pid, _ = struct.unpack_from("<IIQQIIII", request)
    body = request[40:]
    if operation in (FORGET, FORGETS):
        continue
    print(operation, pid, file=log, flush=True)
    error, answer = 0, b""
    if operation == INIT:
        answer = struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 0, 0, 65536, 1, 16, 0, 0, *[0] * 7)
    elif operation == LOOKUP and body == b"file\0":
        answer = struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + attributes(2)
    elif operation == GETATTR:
        answer = struct.pack("<QII", 0, 0, 0) + attributes(node)
    elif operation == OPEN:
        answer = struct.pack("<QII", 0, 1, 0)  # FOPEN_DIRECT_IO: every read is a request
    elif operation == READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        answer = bytes(min(size, max(0, 65536 - offset)))
    elif operation == LOOKUP:
        error = -2
    elif operation not in (RELEASE, FLUSH):
        error = -38
    os.write(fuse, struct.pack("<IiQ", 16 + len(answer), error, unique) + answer)
os.waitpid(client, 0)
"#;

#[test]
fn requests_to_a_fuse_server() {
    need_root!();
    need_program!("unshare", "python3");
    if !fs::exists("/dev/fuse").unwrap() {
        return fathom_tests::skip("this kernel has no FUSE");
    }
    let scratch = Scratch::new();
    let (mounted, log) = (scratch.root().join("mounted"), scratch.root().join("log"));
    fs::create_dir(&mounted).unwrap();
    let recording = Record::new(&scratch)
        .by(APART)
        .command(["python3", "-c", FUSE])
        .command([&mounted, &log])
        .run()
        .must_exit(0);
    recording.complete();
    let meta = meta(&recording.session);
    let layers = meta["layers"].as_array().unwrap();
    let fuse = layers.iter().find(|layer| layer["name"] == "fuse").unwrap();
    if fuse["recorded"] != true {
        return fathom_tests::skip(fuse["reason"].as_str().unwrap());
    }
    // The kernel closes files and begins for nobody.
    let served: Vec<(i64, i64)> = fs::read_to_string(&log)
        .unwrap()
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(operation, pid)| (operation.parse().unwrap(), pid.parse().unwrap()))
        .filter(|(_, pid)| *pid != 0)
        .collect();
    let names = [
        (1, "LOOKUP"),
        (3, "GETATTR"),
        (14, "OPEN"),
        (15, "READ"),
        (25, "FLUSH"),
        (39, "IOCTL"),
    ];
    let name = |operation: i64| names.iter().find(|(number, _)| *number == operation);
    let served: Vec<_> = served
        .iter()
        .map(|(operation, pid)| (format!("FUSE_{}", name(*operation).unwrap().1), *pid))
        .collect();
    let rows = recording.rows(
        "SELECT s.name, c.tid, s.ts_ns >= c.ts_ns AND s.ts_ns + s.dur_ns <= c.ts_ns + c.dur_ns
             AS within
         FROM slices s JOIN syscalls c USING (rid) WHERE s.layer = 'fuse' ORDER BY s.ts_ns",
    );
    assert!(
        rows.iter().all(|row| row.value("within") == true),
        "{rows:?}"
    );
    let seen: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.text("name").unwrap().to_owned(),
                row.int("tid").unwrap(),
            )
        })
        .collect();
    assert_eq!(seen, served);
    assert!(seen.iter().filter(|(name, _)| name == "FUSE_READ").count() >= 1);
    adds_up(&recording);
}
