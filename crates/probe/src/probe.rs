//! The eBPF programs at work: attached, configured, and read.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;

use fathom_model::abi::{
    CpuStats, SLOT_BYTES, ShedKey, ShedValue, TASK_WAITS_FOR_EXEC, TailControl, TaskState,
};
use fathom_model::layers::LayerSet;
use fathom_model::meta::{Hook, PerfCounter, RecordedLayer};
use fathom_model::raw::RawChunk;
use libbpf_rs::{IterOpts, Link, MapCore, MapFlags, MapIterOpts, MapType, Object};

use crate::call_counters::CallCounters;
use crate::containers::Containers;
use crate::contexts::Contexts;
use crate::error::ProbeError;
use crate::hooks::{FUNCTION, Feature, Hooks, NO_COUNTERS, NO_LIBRARY, NO_STACKS, NO_USDT};
use crate::in_flight::InFlight;
use crate::library::Libraries;
use crate::library::preload::{Preload, PreloadFiles, Preloaded};
use crate::load::{self, Loaded, Room};
use crate::maps::map;
use crate::mounts::Mounts;
use crate::options::ProbeOptions;
use crate::perf_counters::PerfCounters;
use crate::pod_rules::PodRules;
use crate::rings::{Crossed, LiveTasks, SlotRings, Stats, WideRings};
use crate::stacks::Stacks;
use crate::stats::{KernelStats, Losses};
use crate::tls::TlsLibraries;
use crate::unfinished::unfinished;
use crate::usdt::StaticProbes;
use crate::wanted_functions::Wanted;
use crate::{Detail, adopt};

/// The programs, loaded.
pub struct Probe {
    // Links before the object: programs are detached before they go.
    links: Vec<Link>,
    object: Object,
    slots: SlotRings,
    wide: WideRings,
    stats: Stats,
    live: LiveTasks,
    hooks: Hooks,
    layers: LayerSet,
    cpus: usize,
    ring_bytes: u64,
    all_tasks: bool,
    paths: bool,
    spare: Vec<Vec<u8>>,
    mounts: Option<Mounts>,
    containers: Containers,
    pods: Option<PodRules>,
    /// Names of functions of the kernel, until they are drained: they come before all visits.
    function_names: Option<RawChunk>,
    counted: CallCounters,
    stacks: Option<Stacks>,
    libraries: Option<Libraries>,
    contexts: Option<Contexts>,
    /// Programs whose static probes are found before anything is recorded.
    programs: Vec<PathBuf>,
    preload: Preload,
    library_budget: Option<u64>,
    preloaded: Option<Preloaded>,
    perf_counters: Vec<PerfCounter>,
    /// The counters that the machine has.
    counters: PerfCounters,
    stopped: bool,
    /// Requests to devices that were on their way at the end, and their records until
    /// these are drained.
    in_flight: (Option<RawChunk>, u64),
}

impl Probe {
    /// Loads the programs; nothing is recorded before [`Probe::attach`].
    pub fn load(options: &ProbeOptions) -> Result<Self, ProbeError> {
        let (loaded, wide, room) = load::load(options)?;
        let Room { cpus, per_cpu, .. } = room;
        // A BPF ring buffer shows its pages twice, so that records never wrap.
        let ring_bytes = cpus * (per_cpu * SLOT_BYTES as usize + 2 * room.wide_bytes as usize);
        let Loaded {
            object,
            hooks,
            perf_counters,
        } = loaded;
        let slots = SlotRings::new(
            map(&object, "slots")?.as_fd(),
            map(&object, "cursors")?.as_fd(),
            cpus,
            per_cpu,
        )?;
        let stats = Stats::new(map(&object, "stats")?.as_fd(), cpus)?;
        // Without a program for them, nothing is looked for.
        let library = match hooks.serve(Feature::Library) {
            true => options.library.clone(),
            false => Wanted::default(),
        };
        let usdt = match hooks.serve(Feature::Usdt) {
            true => options.usdt.clone(),
            false => Vec::new(),
        };
        let multi = hooks.has("library_enter_multi");
        let tls = options.tls && hooks.serve(Feature::Tls);
        let looks = !library.is_empty() || !usdt.is_empty() || tls;
        let tls = tls.then(|| TlsLibraries::new(hooks.has("tls_enter_multi")));
        let usdt = StaticProbes::new(usdt, hooks.has("usdt_probe_multi"));
        // The libraries of a process that runs already are among its mappings.
        let of_system = options.filters.pids().is_empty() && !options.all_tasks;
        let mut pods = PodRules::new(&options.filters);
        if let Some(pods) = &mut pods {
            pods.look(&map(&object, "rules")?);
        }
        let live = LiveTasks::new(map(&object, ".data.live")?.as_fd())?;
        Ok(Self {
            links: Vec::new(),
            slots,
            wide,
            stats,
            live,
            hooks,
            layers: options.layers,
            cpus,
            ring_bytes: ring_bytes as u64,
            all_tasks: options.all_tasks,
            paths: options.detail != Detail::Raw || options.counters,
            spare: Vec::new(),
            // Without /proc files in other namespaces have no path here.
            mounts: Mounts::open().ok(),
            containers: Containers::default(),
            pods,
            function_names: options.functions.names(crate::monotonic_ns()),
            counted: CallCounters::default(),
            stacks: options.stacks.then(Stacks::new),
            libraries: looks.then(|| {
                Libraries::new(
                    library,
                    (usdt, tls),
                    (of_system, multi),
                    options.library_budget,
                )
            }),
            contexts: options.contexts.then(Contexts::default),
            programs: options.usdt_files.clone(),
            preload: options.preload.clone(),
            library_budget: options.library_budget,
            preloaded: None,
            perf_counters,
            counters: room.perf_counters,
            stopped: false,
            in_flight: (None, 0),
            object,
        })
    }

    /// Attaches the programs. A hook that the kernel refuses is noted in
    /// [`Probe::hooks`]; only without the system call hooks is it an error.
    pub fn attach(&mut self) -> Result<(), ProbeError> {
        self.links = self.hooks.attach(&mut self.object, self.cpus)?;
        if let Some(libraries) = &mut self.libraries {
            libraries.prepare(&self.programs, &mut self.object)?;
        }
        self.note_libraries();
        if self.hooks.is_attached("counters_switch") {
            // Without this the programs read nothing.
            self.counters.open(&self.object, self.cpus)?;
        } else {
            for counter in self.perf_counters.iter_mut().filter(|c| c.counted) {
                counter.counted = false;
                counter.note = NO_COUNTERS.to_string();
            }
        }
        Ok(())
    }

    fn note_libraries(&mut self) {
        let libraries = self.libraries.as_mut();
        let found = libraries.map(Libraries::take_hooks).unwrap_or_default();
        self.hooks.list.extend(found);
        let contexts = self.contexts.as_mut();
        let found = contexts.map(Contexts::take_hooks).unwrap_or_default();
        self.hooks.list.extend(found);
    }

    /// The build of the programs that was chosen, and the hooks that were
    /// attached or refused; after [`Probe::stop`] with the runs that the kernel
    /// left out.
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks.list
    }

    /// The layers, and whether they are recorded, once the programs are attached.
    pub fn layers(&self) -> Vec<RecordedLayer> {
        self.hooks.layers(self.layers)
    }

    /// Why no stacks are recorded although the options ask for them.
    pub fn missing_stacks(&self) -> Option<&Hook> {
        let mut missing = self.hooks.list.iter().filter(|hook| !hook.attached);
        missing.find(|hook| hook.note.starts_with(NO_STACKS))
    }

    /// Why no calls of libraries are recorded although the options ask for them.
    pub fn missing_libraries(&self) -> Option<&Hook> {
        let mut missing = self.hooks.list.iter().filter(|hook| !hook.attached);
        missing.find(|hook| hook.note.starts_with(NO_LIBRARY))
    }

    /// Why no spans of static probes are recorded although the options ask for them.
    pub fn missing_usdt(&self) -> Option<&Hook> {
        let mut missing = self.hooks.list.iter().filter(|hook| !hook.attached);
        missing.find(|hook| hook.note.starts_with(NO_USDT))
    }

    /// Functions of the kernel that the options name and that are not recorded.
    pub fn missing_functions(&self) -> impl Iterator<Item = &Hook> {
        let missing = self.hooks.list.iter().filter(|hook| !hook.attached);
        missing.filter(|hook| hook.name.starts_with(FUNCTION) || hook.name == "functions")
    }

    /// The counters of perf that the options ask for, and what became of each.
    pub fn perf_counters(&self) -> &[PerfCounter] {
        &self.perf_counters
    }

    /// Makes what the command has to load so that its library calls are recorded; none if
    /// [`ProbeOptions::preload`] is empty. `uid`: its user, if that is another one.
    ///
    /// # Errors
    /// When files cannot be made.
    pub fn preload(&mut self, uid: Option<u32>) -> Result<Option<Arc<PreloadFiles>>, ProbeError> {
        if self.preload.is_empty() {
            return Ok(None);
        }
        let preloaded = Preloaded::new(self.preload.clone(), self.library_budget, uid, self.cpus)?;
        let files = preloaded.files();
        self.preloaded = Some(preloaded);
        Ok(Some(files))
    }

    /// Records task `pidfd` from the moment when it executes a program.
    pub fn record_from_exec(&self, pidfd: BorrowedFd<'_>) -> Result<(), ProbeError> {
        let tasks = map(&self.object, "tasks")?;
        let mut state = vec![0; tasks.value_size() as usize];
        state
            .get_mut(TaskState::FLAGS_AT..TaskState::FLAGS_AT + 4)
            .ok_or(ProbeError::Object("state of tasks"))?
            .copy_from_slice(&TASK_WAITS_FOR_EXEC.to_ne_bytes());
        let refused = |source| ProbeError::Refused {
            what: "state for the command".into(),
            source,
        };
        // Task storage takes the descriptor; the map that replaces it takes the id.
        let key = if tasks.map_type() == MapType::TaskStorage {
            pidfd.as_raw_fd().to_ne_bytes()
        } else {
            pid_of(pidfd)?.to_ne_bytes()
        };
        tasks.update(&key, &state, MapFlags::ANY).map_err(refused)?;
        self.live.set(1);
        Ok(())
    }

    /// Records processes that are running, or all when the options say so, and
    /// returns descriptions of them. To be called after [`Probe::attach`].
    pub fn adopt(&mut self, pids: &[u32]) -> Result<RawChunk, ProbeError> {
        for pid in pids {
            let targets = map(&self.object, "targets")?;
            if *pid == std::process::id() {
                return Err(ProbeError::Itself(*pid));
            }
            targets
                .update(&pid.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(|source| ProbeError::Refused {
                    what: "the target".into(),
                    source,
                })?;
        }
        if let Some(contexts) = &mut self.contexts {
            contexts.adopt(pids, &mut self.object)?;
        }
        // Twice: a thread that a task not yet taken in makes during the first
        // pass may come before the pass's position.
        for _ in 0..2 {
            self.iterate("adopt")?;
        }
        let chosen = (!self.all_tasks).then_some(pids);
        let described = adopt::descriptions(chosen, self.paths)?;
        if let Some(libraries) = &mut self.libraries {
            libraries.follow_all(std::slice::from_ref(&described));
            libraries.look(&mut self.object);
        }
        self.note_libraries();
        Ok(described)
    }

    /// The calls in which recorded threads are now, and the operations that have not completed.
    ///
    /// # Errors
    /// When the kernel refuses an iterator.
    pub fn in_flight(&mut self) -> Result<Vec<InFlight>, ProbeError> {
        let mut written = self.iterate("in_flight")?;
        let operations = "operations_in_flight";
        // Not without the programs that record operations.
        if self
            .object
            .progs()
            .any(|program| program.name() == operations)
        {
            written.extend(self.iterate_map(operations, "operations")?);
        }
        Ok(InFlight::parse(&written))
    }

    /// Runs a program for each task of the machine, and gives what it writes.
    fn iterate(&mut self, name: &str) -> Result<Vec<u8>, ProbeError> {
        self.run_iterator(name, IterOpts::None)
    }

    /// Runs a program for each element of a map, and gives what it writes.
    fn iterate_map(&mut self, name: &str, of: &'static str) -> Result<Vec<u8>, ProbeError> {
        // A descriptor of its own, as the object is borrowed.
        let elements = map(&self.object, of)?.as_fd().try_clone_to_owned();
        let elements = elements.map_err(|source| ProbeError::Refused {
            what: format!("the map {of}"),
            source: libbpf_rs::Error::from(source),
        })?;
        self.run_iterator(name, IterOpts::Map(MapIterOpts::from_fd(elements.as_fd())))
    }

    fn run_iterator(&mut self, name: &str, over: IterOpts<'_>) -> Result<Vec<u8>, ProbeError> {
        let refused = |source| ProbeError::Refused {
            what: format!("the iterator {name}"),
            source,
        };
        let program = self
            .object
            .progs_mut()
            .find(|program| program.name() == name)
            .ok_or(ProbeError::Object("iterator"))?;
        let link = program.attach_iter_with_opts(over).map_err(refused)?;
        let mut iter = libbpf_rs::Iter::new(&link).map_err(refused)?;
        // Reading runs it.
        let mut written = Vec::new();
        std::io::Read::read_to_end(&mut iter, &mut written)
            .map_err(|source| refused(libbpf_rs::Error::from(source)))?;
        Ok(written)
    }

    /// Recorded tasks that are alive.
    pub fn live_tasks(&self) -> u64 {
        self.live.get()
    }

    /// Whether the filters ask for pods of which none is here yet.
    pub fn waits_for_pods(&self) -> bool {
        self.pods.as_ref().is_some_and(PodRules::wait)
    }

    /// Makes rules for pods that have started, and takes in their tasks that run already.
    fn follow_pods(&mut self) {
        let Some(pods) = self.pods.as_mut().filter(|_| !self.stopped) else {
            return;
        };
        if map(&self.object, "rules").is_ok_and(|rules| pods.look(&rules)) {
            self.iterate("adopt").ok();
        }
    }

    /// Takes what the programs have written so far.
    pub fn drain(&mut self, out: &mut Vec<RawChunk>) {
        self.follow_pods();
        out.extend(self.mounts.as_mut().and_then(Mounts::changed));
        out.extend(self.containers.changed(self.stopped));
        out.extend(self.function_names.take());
        let spare = &mut self.spare;
        self.slots.drain(out, |bytes| match spare.pop() {
            Some(mut buffer) => {
                buffer.clear();
                buffer.reserve(bytes);
                buffer
            }
            None => Vec::with_capacity(bytes),
        });
        let from = out.len();
        self.wide.drain(out);
        if let Some(libraries) = &mut self.libraries {
            libraries.follow_all(out.get(from..).unwrap_or_default());
            if !self.stopped {
                libraries.look(&mut self.object);
            }
            libraries.count(&self.object, self.stopped);
            out.extend(libraries.take_records());
        }
        if let Some(contexts) = &mut self.contexts {
            contexts.follow(out.get(from..).unwrap_or_default());
            if !self.stopped {
                contexts.look(&mut self.object);
            }
            out.extend(contexts.take_records());
        }
        self.note_libraries();
        // After the rings: what their calls were made in has begun.
        if let Some(preloaded) = &mut self.preloaded {
            preloaded.follow(out.get(from..).unwrap_or_default());
            preloaded.drain(self.stopped, out);
            if self.stopped {
                self.hooks.list.extend(preloaded.hooks());
            }
        }
        out.extend(self.in_flight.0.take());
        if let Some(stacks) = &mut self.stacks {
            stacks.number(out.get_mut(from..).unwrap_or_default());
            if self.stopped {
                out.extend(stacks.name());
            }
        }
    }

    /// Gives memory of a chunk back, to be used again.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < 2 * self.cpus {
            self.spare.push(buffer);
        }
    }

    /// Stops recording: detaches the programs and records the calls that have not returned. The
    /// next [`Probe::drain`] delivers the remaining records.
    pub fn stop(&mut self) -> Result<(), ProbeError> {
        if self.links.is_empty() {
            return Ok(());
        }
        self.links.clear();
        if let Some(libraries) = &mut self.libraries {
            libraries.stop();
        }
        if let Some(contexts) = &mut self.contexts {
            contexts.stop();
        }
        if let Some(preloaded) = &self.preloaded {
            preloaded.stop();
        }
        self.stopped = true;
        // A program that another CPU was in when it was detached ends within
        // microseconds; the kernel has no call that waits for it.
        std::thread::sleep(std::time::Duration::from_millis(20));
        self.hooks.count_skipped(&self.object);
        if self.hooks.serve(Feature::Block) {
            let merges = ["layer_rq_merge", "layer_rq_merge_behind_queue"];
            let merges = merges.iter().any(|name| self.hooks.is_attached(name));
            let (chunk, count) = unfinished(&self.object, merges)?;
            self.in_flight = (Some(chunk), count);
        }
        self.iterate("pending").map(drop)
    }

    /// Counts so far.
    pub fn counters(&self) -> KernelStats {
        KernelStats::of(&self.cpu_stats())
    }

    fn cpu_stats(&self) -> Vec<CpuStats> {
        let mut stats = self.stats.read();
        for (cpu, stats) in stats.iter_mut().enumerate() {
            stats.slot_calls = self.slots.written(cpu);
        }
        if let Some(first) = stats.first_mut() {
            first.blocks += self.in_flight.1;
            if let Some(preloaded) = &self.preloaded {
                preloaded.count(first);
            }
        }
        stats
    }

    /// Records that have been drained.
    pub fn crossed(&self) -> Crossed {
        let mut crossed = self.wide.crossed();
        // Page faults go through the slots, too.
        let faults: u64 = self
            .cpu_stats()
            .iter()
            .map(|cpu| cpu.faults + cpu.layers)
            .sum();
        crossed.calls += self.slots.taken.saturating_sub(faults);
        crossed.others += faults;
        crossed
    }

    pub fn losses(&self) -> Result<Losses, ProbeError> {
        let mut losses = Losses::read(&self.object, self.cpus, self.cpu_stats())?;
        if let Some(preloaded) = &self.preloaded {
            preloaded.add_losses(&mut losses);
        }
        Ok(losses)
    }

    /// Says which calls get a record from now on, of a recording with
    /// [`ProbeOptions::tail`]. All do until then.
    ///
    /// # Errors
    /// When the map can't be written.
    pub fn set_tail(&self, tail: &TailControl) -> Result<(), ProbeError> {
        map(&self.object, "tail_controls")?
            .update(&0u32.to_ne_bytes(), &tail.to_bytes(), MapFlags::ANY)
            .map_err(|source| ProbeError::Refused {
                what: "which calls get a record".into(),
                source,
            })
    }

    /// In a recording with counters: what was counted since the last time, by CPU, call, process,
    /// and file. Counts that the kernel had no room to split have [`crate::NO_PROCESS`] as their
    /// process.
    ///
    /// # Errors
    /// When the maps can't be read or written.
    pub fn take_counted(&mut self) -> Result<Vec<(ShedKey, ShedValue)>, ProbeError> {
        let settle = (!self.stopped).then_some(|| self.wide.wait_for_programs());
        self.counted.take(&self.object, self.cpus, settle)
    }

    /// Memory of the rings of all CPUs as it counts in this process when all of it
    /// was used, bytes.
    pub fn ring_bytes(&self) -> u64 {
        self.ring_bytes
    }

    /// Highest share of a CPU's slot ring that was ever in use, 0 to 1.
    pub fn ring_peak(&self) -> f64 {
        self.slots.peak as f64 / self.slots.capacity() as f64
    }
}

/// Id of the process behind a descriptor, in the namespace of this process.
fn pid_of(pidfd: BorrowedFd<'_>) -> Result<u32, ProbeError> {
    let info = format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd());
    let unknown = |cause| ProbeError::NoProcess { pid: 0, cause };
    let text = std::fs::read_to_string(info).map_err(unknown)?;
    text.lines()
        .find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok())
        .ok_or_else(|| unknown(std::io::Error::from_raw_os_error(libc::ESRCH)))
}
