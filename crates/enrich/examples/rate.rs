//! How long merging, decoding and enriching take per event: slot records of
//! reads and writes by 4 threads on 2 CPUs to 8 files.
//!
//! `cargo run --release -p fathom-enrich --example rate [MILLIONS]`

use std::hint::black_box;
use std::time::Instant;

use fathom_decode::{Event, Merge};
use fathom_enrich::{EnrichOptions, Enricher};
use fathom_model::abi::{CallRecord, NO_OFFSET, RECORD_CALL};
use fathom_model::raw::{RawChunk, Ring};
use fathom_model::syscalls::Syscall;

/// Events of one CPU between two drains.
const CHUNK: u64 = 8192;
const CPUS: u64 = 2;
/// Rows of a batch.
const BATCH: usize = 500_000;

fn main() {
    let millions: u64 = std::env::args()
        .nth(1)
        .and_then(|a| a.parse().ok())
        .unwrap_or(8);
    let rounds = millions * 1_000_000 / (CHUNK * CPUS);
    let calls: Vec<u16> = ["read", "write", "pread64", "pwrite64"]
        .iter()
        .filter_map(|name| Syscall::index_of(name).map(|i| i as u16))
        .collect();
    let template = round(&calls);

    let (merge_ns, events) = run(&template, rounds, |merge, end| {
        let mut sum = 0;
        merge.drain_until(end, |_, event| {
            if let Event::Call(r) = event {
                sum ^= r.offset;
            }
        });
        black_box(sum);
    });
    println!("merge and decode:           {merge_ns:6.1} ns per event ({events} events)");

    let mut enricher = Enricher::new(EnrichOptions::default());
    let mut rows = 0;
    let (all_ns, events) = run(&template, rounds, |merge, end| {
        merge.drain_until(end, |cpu, event| enricher.event(cpu, event));
        if enricher.pending_rows() >= BATCH {
            for batch in enricher.take() {
                rows += batch.len();
            }
        }
    });
    rows += enricher.take().iter().map(|b| b.len()).sum::<usize>();
    println!("merge, decode and enrich:   {all_ns:6.1} ns per event ({events} events)");
    println!(
        "enrich alone (difference):  {:6.1} ns per event",
        all_ns - merge_ns
    );
    println!("rows taken: {rows}, of calls: {}", enricher.totals());
}

/// The records of one drain of each CPU, with times from 0.
fn round(calls: &[u16]) -> Vec<Vec<u8>> {
    let Some(empty) = CallRecord::parse(&[0; CallRecord::SIZE]) else {
        return Vec::new();
    };
    (0..CPUS)
        .map(|cpu| {
            (0..CHUNK)
                .flat_map(|i| {
                    let n = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                    let syscall = calls.get(n as usize % calls.len()).copied().unwrap_or(0);
                    let record = CallRecord {
                        kind: RECORD_CALL as u8,
                        syscall,
                        fd: (n % 8) as i32 + 3,
                        ts_ns: i * 200 + cpu * 90 + n % 50,
                        dur_ns: 400,
                        pid: 1000,
                        tid: 1000 + (cpu * 2 + n / 8 % 2) as u32,
                        ret: if n % 64 == 0 { -11 } else { 4096 },
                        file: (n % 8) as u32 + 1,
                        offset: if n % 64 == 0 {
                            NO_OFFSET
                        } else {
                            (i * 4096) as i64
                        },
                        size: 4096,
                        ..empty
                    };
                    record.to_bytes()
                })
                .collect()
        })
        .collect()
}

/// Runs `rounds` drains; only merge and `drain` are timed.
fn run(template: &[Vec<u8>], rounds: u64, mut drain: impl FnMut(&mut Merge, u64)) -> (f64, u64) {
    let mut merge = Merge::new();
    let clock = Clock(Instant::now());
    let mut elapsed = 0;
    let mut events = 0;
    for i in 0..rounds {
        let base = 1_000_000 + i * CHUNK * 200;
        let chunks: Vec<RawChunk> = template
            .iter()
            .enumerate()
            .map(|(cpu, records)| {
                let mut bytes = merge.spare_buffer().unwrap_or_default();
                bytes.extend_from_slice(records);
                for slot in bytes.chunks_exact_mut(CallRecord::SIZE) {
                    if let Some(ts) = slot.get_mut(8..16).and_then(|s| s.first_chunk_mut()) {
                        *ts = (u64::from_ne_bytes(*ts) + base).to_ne_bytes();
                    }
                }
                events += (bytes.len() / CallRecord::SIZE) as u64;
                RawChunk {
                    cpu: cpu as u32,
                    ring: Ring::Slot,
                    bytes,
                }
            })
            .collect();
        let begun = clock.now_ns();
        for chunk in chunks {
            merge.push(chunk);
        }
        drain(&mut merge, base + CHUNK * 200);
        elapsed += clock.now_ns() - begun;
    }
    (elapsed as f64 / events as f64, events)
}

/// Time that this thread ran, so that other programs do not count; the wall
/// clock where the kernel does not tell.
struct Clock(Instant);

impl Clock {
    fn now_ns(&self) -> u64 {
        std::fs::read_to_string("/proc/thread-self/schedstat")
            .ok()
            .and_then(|text| text.split_whitespace().next()?.parse().ok())
            .unwrap_or(self.0.elapsed().as_nanos() as u64)
    }
}
