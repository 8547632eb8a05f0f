//! The floor: the least that a tracer of one process can do, and less.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, PrintLevel, RingBufferBuilder,
};

static PROBES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/floor.bpf.o"));

/// Which pair of programs is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Empty programs.
    Bare,
    /// One record a call.
    Floor,
}

/// Records that were written and dropped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Records that were drained.
    pub drained: u64,
    /// Records that found no room.
    pub dropped: u64,
}

/// Attached programs; they go with it.
pub struct Floor {
    object: Object,
    _links: Vec<Link>,
    stop: Arc<AtomicBool>,
    drain: Option<JoinHandle<Result<u64>>>,
}

impl Floor {
    /// Loads and attaches the programs; they record nothing yet.
    ///
    /// # Errors
    /// When the kernel refuses them.
    pub fn attach(kind: Kind) -> Result<Floor> {
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| eprint!("{text}"))));
        let mut open = ObjectBuilder::default().open_memory(PROBES)?;
        let prefix = match kind {
            Kind::Bare => "bare_",
            Kind::Floor => "floor_",
        };
        for mut program in open.progs_mut() {
            let wanted = program.name().to_string_lossy().starts_with(prefix);
            program.set_autoload(wanted);
        }
        let object = open.load().context("loading the floor's programs")?;
        let mut links = Vec::new();
        for program in object.progs_mut() {
            if program.name().to_string_lossy().starts_with(prefix) {
                links.push(program.attach().context("attaching the floor's programs")?);
            }
        }
        let stop = Arc::new(AtomicBool::new(false));
        let drain = match kind {
            Kind::Bare => None,
            Kind::Floor => {
                let records = MapHandle::try_from(&map(&object, "records")?)?;
                let stop = Arc::clone(&stop);
                Some(std::thread::spawn(move || drain(&records, &stop)))
            }
        };
        Ok(Floor {
            object,
            _links: links,
            stop,
            drain,
        })
    }

    /// Records the calls of this process from now on.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn record(&self, pid: u32) -> Result<()> {
        let target = map(&self.object, "target")?;
        target.update(&0u32.to_ne_bytes(), &pid.to_ne_bytes(), MapFlags::ANY)?;
        Ok(())
    }

    /// Detaches, and says how many records there were.
    ///
    /// # Errors
    /// When the ring could not be drained.
    pub fn finish(mut self) -> Result<Counts> {
        self._links.clear();
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.drain.take() else {
            return Ok(Counts::default());
        };
        let drained = thread
            .join()
            .map_err(|_| anyhow!("the draining thread failed"))??;
        let counters = map(&self.object, "counters")?;
        let per_cpu = counters.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)?;
        let mut counts = Counts {
            drained,
            dropped: 0,
        };
        let mut written = 0;
        for cpu in per_cpu.unwrap_or_default() {
            let word = |at: usize| {
                let bytes = cpu.get(at..at + 8).and_then(|b| b.try_into().ok());
                bytes.map_or(0, u64::from_ne_bytes)
            };
            written += word(0);
            counts.dropped += word(8);
        }
        if written != drained {
            return Err(anyhow!("{written} records were written, {drained} drained"));
        }
        Ok(counts)
    }
}

fn map<'a>(object: &'a Object, name: &str) -> Result<libbpf_rs::Map<'a>> {
    object
        .maps()
        .find(|m| m.name().to_string_lossy() == name)
        .with_context(|| format!("the floor has no map {name}"))
}

/// Takes records out until told to stop and the ring is empty.
fn drain(records: &MapHandle, stop: &AtomicBool) -> Result<u64> {
    let drained = std::cell::Cell::new(0);
    let mut builder = RingBufferBuilder::new();
    builder.add(records, |_| {
        drained.set(drained.get() + 1);
        0
    })?;
    let ring = builder.build()?;
    loop {
        let last = stop.load(Ordering::Acquire);
        ring.consume()?;
        if last {
            drop(ring);
            return Ok(drained.get());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
