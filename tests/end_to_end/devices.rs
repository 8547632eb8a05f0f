//! The time in a device, where that is known: null_blk, which completes requests after a
//! time that is set, and a disk whose rate the emulator limits (`scripts/kernels.sh`).
//! Beside them, what the kernel itself says: the counters of the device and the blk
//! tracer.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use fathom_tests::environment::must_run;
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, skip};

/// Requests of each kind that are made.
const REQUESTS: i64 = 100;

/// Reads and writes of 4 KiB on device $1 by $2 threads, $3 each, and its counters before
/// and after.
const READS_AND_WRITES: &str = r#"set -e
stat=/sys/block/$(basename "$1")/stat
run() {
    fio --output=/dev/null --name="$2" --filename="$1" --rw="$2" --bs=4k --size=16M \
        --number_ios="$requests" --direct=1 --ioengine=psync --thread --numjobs="$threads"
}
threads=$2 requests=$3
cat "$stat"
run "$1" randread
run "$1" randwrite
cat "$stat"
"#;

/// A device of null_blk, taken away when dropped.
struct NullBlk {
    item: PathBuf,
    name: String,
}

impl NullBlk {
    /// One that completes each request after `ns`; none where the kernel has no null_blk.
    fn make(ns: u64) -> Option<NullBlk> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !Path::new("/sys/module/null_blk").exists() {
            return None;
        }
        let root = Path::new("/sys/kernel/config");
        if !root.join("nullb").exists() {
            must_run("mount", ["-t", "configfs", "none", "/sys/kernel/config"]);
        }
        let own = format!("fathom{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let item = root.join("nullb").join(&own);
        fs::create_dir(&item).unwrap();
        let set = |name: &str, value: u64| fs::write(item.join(name), value.to_string()).unwrap();
        set("size", 64);
        // Completed by a timer.
        set("irqmode", 2);
        set("completion_nsec", ns);
        set("power", 1);
        let index = fs::read_to_string(item.join("index")).unwrap();
        // Newer kernels call it as its directory is called.
        let name = if Path::new("/sys/block").join(&own).exists() {
            own
        } else {
            format!("nullb{}", index.trim())
        };
        assert!(Path::new("/dev").join(&name).exists(), "{name}");
        Some(NullBlk { item, name })
    }
}

impl Drop for NullBlk {
    fn drop(&mut self) {
        let _ = fs::write(self.item.join("power"), "0");
        let _ = fs::remove_dir(&self.item);
    }
}

/// The kernel's own tracer of block devices, while it is on.
struct BlkTracer {
    switch: PathBuf,
}

const TRACING: &str = "/sys/kernel/tracing";

impl BlkTracer {
    /// None where the kernel has no such tracer.
    fn start(device: &str) -> Option<BlkTracer> {
        let tracing = Path::new(TRACING);
        let tracers = fs::read_to_string(tracing.join("available_tracers")).ok()?;
        let switch = Path::new("/sys/block").join(device).join("trace/enable");
        if !tracers.split_whitespace().any(|tracer| tracer == "blk") || !switch.exists() {
            return None;
        }
        fs::write(tracing.join("trace_clock"), "mono").unwrap();
        fs::write(tracing.join("current_tracer"), "blk").unwrap();
        fs::write(&switch, "1").unwrap();
        Some(BlkTracer { switch })
    }

    /// From issue to completion of each request, nanoseconds, in the order of completion.
    fn stop(self) -> Vec<i64> {
        fs::write(&self.switch, "0").unwrap();
        let text = fs::read_to_string(Path::new(TRACING).join("trace")).unwrap();
        fs::write(Path::new(TRACING).join("current_tracer"), "nop").unwrap();
        let mut issued: HashMap<String, i64> = HashMap::new();
        let mut times = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            // TASK-PID [CPU] FLAGS SECONDS: MAJOR,MINOR ACTION KIND SECTOR + SECTORS [...]
            let words: Vec<_> = line.split_whitespace().collect();
            let Some(at) = words.iter().position(|word| {
                word.strip_suffix(':')
                    .is_some_and(|time| time.parse::<f64>().is_ok())
            }) else {
                continue;
            };
            let [time, _, action, _, sector, ..] = words[at..] else {
                continue;
            };
            let (seconds, micros) = time.trim_end_matches(':').split_once('.').unwrap();
            let number = |text: &str| text.parse::<i64>().unwrap();
            let ns = number(seconds) * 1_000_000_000 + number(micros) * 1000;
            match action {
                "D" => {
                    issued.insert(sector.to_string(), ns);
                }
                "C" => times.extend(issued.remove(sector).map(|begin| ns - begin)),
                _ => {}
            }
        }
        times
    }
}

/// What was recorded of requests to `device`.
pub(crate) struct Measured {
    pub(crate) recording: Recording,
    /// From issue to completion of each, in the order of completion.
    device_ns: Vec<i64>,
}

/// Records reads and writes on `device`; counts are those of the device, and so is the
/// time, as far as its counters tell.
pub(crate) fn measure(scratch: &Scratch, device: &str, threads: i64) -> Measured {
    let recording = Record::new(scratch)
        .command(["sh", "-c", READS_AND_WRITES, "script"])
        .command([format!("/dev/{device}"), threads.to_string()])
        .command([(REQUESTS / threads).to_string()])
        .run()
        .must_exit(0);
    recording.complete();
    let text = recording.text();
    let readings: Vec<Vec<i64>> = text
        .lines()
        .map(|line| {
            let numbers = line.split_whitespace().map(|w| w.parse().unwrap());
            numbers.collect()
        })
        .collect();
    let grown = |field: usize| readings[1][field] - readings[0][field];
    let own = format!("device = '{device}' AND rid IS NOT NULL");
    let sums = recording.rows(&format!(
        "SELECT count(*) FILTER (op = 'read') AS reads, count(*) FILTER (op = 'write') AS writes,
             sum(bytes) FILTER (op = 'read') // 512 AS read_sectors,
             sum(bytes) FILTER (op = 'write') // 512 AS written_sectors,
             sum(dur_ns) // 1000000 AS total_ms,
             (SELECT count(*) FROM bios SEMI JOIN (
                 SELECT block_id FROM block WHERE {own}
             ) USING (block_id)) AS bios
         FROM block WHERE {own}"
    ));
    // Documentation/block/stat.rst
    for (name, field) in [
        ("reads", 0),
        ("read_sectors", 2),
        ("writes", 4),
        ("written_sectors", 6),
    ] {
        assert_eq!(sums[0].int(name), Some(grown(field)), "{name}: {sums:?}");
    }
    // Neighbors that wait at a time become one.
    for merged in [grown(1), grown(5)] {
        assert!(merged <= if threads > 1 { 5 } else { 0 }, "{merged} merged");
    }
    assert_eq!(grown(0) + grown(1), REQUESTS);
    assert_eq!(grown(4) + grown(5), REQUESTS);
    assert_eq!(sums[0].int("bios"), Some(2 * REQUESTS), "{sums:?}");
    // Its time in queue and device, which the counters know in milliseconds.
    let (told, seen) = (grown(3) + grown(7), sums[0].int("total_ms").unwrap());
    eprintln!("{device}: the kernel counts {told} ms, recorded are {seen} ms");
    assert!(
        (seen - told).abs() <= 2 + told / 20,
        "{seen} ms, not {told} ms"
    );
    let device_ns = recording
        .rows(&format!(
            "SELECT completed_at_ns - issued_at_ns AS ns FROM block WHERE {own} ORDER BY completed_at_ns"
        ))
        .iter()
        .map(|row| row.int("ns").unwrap())
        .collect();
    Measured {
        recording,
        device_ns,
    }
}

fn median(values: &[i64]) -> i64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// Reads that wait for the device spend the time there, in its slices too.
fn slices_agree(measured: &Measured, device: &str) {
    let rows = measured.recording.rows(&format!(
        "SELECT sum(s.dur_ns)::BIGINT AS slices FROM slices s JOIN syscalls USING (rid)
         WHERE s.layer = 'device' AND s.name = '{device}'"
    ));
    let slices = rows[0].int("slices").unwrap();
    let device: i64 = measured.device_ns.iter().sum();
    assert!(slices <= device, "{slices} of {device} ns");
    assert!(slices >= device / 10 * 9, "{slices} of {device} ns");
}

#[test]
fn null_blk_takes_the_time_that_is_set() {
    need_root!();
    need_program!("fio");
    for ns in [2_000_000, 8_000_000] {
        let Some(null) = NullBlk::make(ns) else {
            skip("this kernel has no null_blk");
            return;
        };
        let tracer = BlkTracer::start(&null.name);
        let scratch = Scratch::new();
        let measured = measure(&scratch, &null.name, 1);
        let own = median(&measured.device_ns);
        let traced = tracer.map(BlkTracer::stop);
        eprintln!(
            "{}: {ns} ns were set, the median is {own} ns; the blk tracer says {:?} ns",
            null.name,
            traced.as_deref().map(median)
        );
        let least = *measured.device_ns.iter().min().unwrap();
        // The timer that ends a request is set a moment before it counts as issued.
        assert!(least >= ns as i64 / 100 * 97, "{least} ns");
        // An emulated timer is a little late.
        assert!(own <= ns as i64 / 100 * 110 + 100_000, "{own} ns");
        if let Some(traced) = traced {
            assert_eq!(traced.len(), measured.device_ns.len());
            let off = median(&traced) - own;
            // Programs and tracer are called one after the other, each in its time.
            assert!(off.abs() <= own / 25, "{off} ns of {own} ns");
        }
        slices_agree(&measured, &null.name);
    }
}

/// The disk whose serial number says how many requests a second it takes.
fn limited_disk() -> Option<(String, i64)> {
    for entry in fs::read_dir("/sys/block").ok()? {
        let path = entry.ok()?.path();
        let serial = fs::read_to_string(path.join("serial")).unwrap_or_default();
        if let Some(rate) = serial.trim().strip_prefix("fathom-iops-") {
            let name = path.file_name()?.to_string_lossy().into_owned();
            return Some((name, rate.parse().ok()?));
        }
    }
    None
}

#[test]
fn a_limited_disk_takes_the_time_of_its_rate() {
    need_root!();
    need_program!("fio");
    let Some((device, rate)) = limited_disk() else {
        skip("no disk here has a rate that is known");
        return;
    };
    let scratch = Scratch::new();
    // It always has a request of each thread, so what a program does between two requests
    // does not count.
    let threads = 4;
    let measured = measure(&scratch, &device, threads);
    let own = median(&measured.device_ns);
    let expected = threads * 1_000_000_000 / rate;
    eprintln!("{device}: {expected} ns a request, the median is {own} ns");
    assert!(own <= expected / 100 * 105, "{own} ns, not {expected} ns");
    assert!(own >= expected / 100 * 90, "{own} ns, not {expected} ns");
    slices_agree(&measured, &device);
}
