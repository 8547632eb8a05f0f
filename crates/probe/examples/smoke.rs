//! Records a command and prints how many records came, by kind: the kernel side
//! on its own. `cargo run --release --example smoke -- COMMAND`

use std::collections::BTreeMap;
use std::time::Duration;

use fathom_model::raw::Ring;
use fathom_model::syscalls::SYSCALLS;
use fathom_probe::{Command, Conditions, Content, Detail, Filters, Probe, ProbeOptions, Selection};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argv: Vec<_> = std::env::args_os().skip(1).collect();
    let detail = match std::env::var("DETAIL").as_deref() {
        Ok("raw") => Detail::Raw,
        Ok("fds") => Detail::Fds,
        _ => Detail::Full,
    };
    let mut probe = Probe::load(&ProbeOptions {
        detail,
        selection: Selection::storage(),
        ring_mib: 32,
        all_tasks: false,
        follow: true,
        layers: fathom_model::layers::LayerSet::chosen(),
        content: Content::None,
        content_max: 0,
        spans: 0,
        tls: false,
        filters: Filters::none(),
        counters: false,
        tail: false,
        stacks: false,
        functions: Default::default(),
        library: Default::default(),
        preload: Default::default(),
        usdt: Vec::new(),
        usdt_files: Vec::new(),
        contexts: false,
        library_budget: None,
        perf_counters: Default::default(),
    })?;
    probe.attach()?;
    // SAFETY: an all-zero set is a valid, empty one.
    let mask = unsafe { std::mem::zeroed() };
    let mut command = Command::spawn(
        &argv,
        Conditions {
            user: None,
            mask,
            nice: 0,
            preserve_environment: false,
            preload: None,
            oom_score: None,
        },
        |pidfd| probe.record_from_exec(pidfd),
    )?;
    let mut chunks = Vec::new();
    let mut kinds: BTreeMap<(String, u8), u64> = BTreeMap::new();
    let mut count = |chunks: &mut Vec<fathom_model::raw::RawChunk>| {
        for chunk in chunks.drain(..) {
            let mut bytes = &chunk.bytes[..];
            while !bytes.is_empty() {
                let (record, used) = match chunk.ring {
                    Ring::Slot => (&bytes[..64], 64),
                    Ring::Wide => {
                        let n = u32::from_ne_bytes(bytes[..4].try_into().unwrap_or_default());
                        (
                            &bytes[8..8 + n as usize],
                            (8 + n as usize).next_multiple_of(8),
                        )
                    }
                };
                let name = match record[0] {
                    1 | 2 => SYSCALLS[u16::from_ne_bytes([record[2], record[3]]) as usize].name,
                    3 => "file",
                    _ => "task",
                };
                *kinds.entry((name.to_string(), record[0])).or_default() += 1;
                bytes = &bytes[used..];
            }
        }
    };
    let exit = loop {
        probe.drain(&mut chunks);
        count(&mut chunks);
        if let Some(exit) = command.try_wait()? {
            break exit;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    probe.stop()?;
    probe.drain(&mut chunks);
    count(&mut chunks);
    let calls: u64 = kinds
        .iter()
        .filter(|((_, k), _)| *k <= 2)
        .map(|(_, n)| n)
        .sum();
    let lost = probe.losses()?.total();
    for ((name, kind), n) in kinds {
        println!("{n:>10} {name} ({kind})");
    }
    let counters = probe.counters();
    println!(
        "exit {} live {} seen {} received {calls} lost {lost} peak {:.3}",
        exit.status(),
        probe.live_tasks(),
        counters.seen,
        probe.ring_peak()
    );
    println!("{:?} ns per call", counters.ns_per_call());
    Ok(())
}
