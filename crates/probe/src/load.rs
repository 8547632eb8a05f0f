//! Loading, attaching and reading the eBPF programs.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use fathom_model::abi::{
    CONTENT_MODE_HASH, CONTENT_MODE_NONE, CONTENT_MODE_PLAIN, CONTENT_MODE_SEND, CallDesc,
    CpuStats, LOST_FAULT, LOST_WRITEBACK, MAX_CONTENT, MAX_NUMBERS, MAX_SYSCALLS, ProbeConfig,
    ShedKey, ShedValue,
};
use fathom_model::meta::Hook;
use fathom_model::raw::RawChunk;
use fathom_model::syscalls::{Api, I386, SYSCALLS};
use libbpf_rs::{
    IterOpts, Link, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject,
};

use crate::error::ProbeError;
use crate::faults::FaultHooks;
use crate::features::Features;
use crate::filter::Filters;
use crate::hooks::Hooks;
use crate::layers::Layers;
use crate::mounts::{self, Mounts};
use crate::rings::{Crossed, SlotRings, Stats, WideRings};
use crate::selection::Selection;
use crate::variant::{self, Variant};
use crate::{Content, Detail, adopt, missing_privilege, operations};

/// What and how to record.
#[derive(Clone, Debug)]
pub struct ProbeOptions {
    /// How much is read of each call.
    pub detail: Detail,
    /// Which calls.
    pub selection: Selection,
    /// Memory of the slot ring of one CPU, MiB; rounded up to a power of two.
    pub ring_mib: u32,
    /// Record every task on the machine.
    pub all_tasks: bool,
    /// Record the children of recorded processes too.
    pub follow: bool,
    /// Layers besides the system calls.
    pub layers: Layers,
    /// What becomes of the bytes that calls move.
    pub content: Content,
    /// Bytes of a call's content that are taken at most, up to
    /// [`fathom_model::abi::MAX_CONTENT`].
    pub content_max: u32,
    /// Which tasks and files, and what calls must come to.
    pub filters: Filters,
    /// Count calls in the kernel instead of recording each; with
    /// [`Detail::Fds`] by file, too.
    pub counters: bool,
}

/// Counts of the kernel side, all CPUs together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls that passed the filters.
    pub seen: u64,
    /// Calls whose record found no room.
    pub lost: u64,
    /// Calls by 32-bit programs, which are not recorded.
    pub compat: u64,
    /// Losses that could not be split by process and file.
    pub shed_overflow: u64,
    /// File records that had to be sent later.
    pub file_retry: u64,
    /// Task records that found no room.
    pub task_lost: u64,
    /// Tasks for which no state could be allocated.
    pub untracked: u64,
    /// Wide records dropped because no scratch memory was free.
    pub scratch_busy: u64,
    /// Page faults on mapped files, and those whose record found no room.
    pub faults: (u64, u64),
    /// Page faults whose mapping could not be looked up.
    pub faults_unknown: u64,
    /// Requests of write-back, and those whose record found no room.
    pub writeback: (u64, u64),
    /// Time in the programs of the calls that were timed, nanoseconds.
    pub timed_ns: u64,
    /// Calls that were timed.
    pub timed_calls: u64,
}

impl Counters {
    /// Nanoseconds that the programs took of a recorded call, entry and return
    /// together, without what the kernel needs to call them: the mean of the
    /// calls that were timed. `None` when none was.
    pub fn ns_per_call(&self) -> Option<f64> {
        (self.timed_calls > 0).then(|| self.timed_ns as f64 / self.timed_calls as f64)
    }
}

/// Calls that were seen but found no room in a ring.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// CPU, call (index into [`SYSCALLS`]) and what was lost: exact.
    pub by_cpu: Vec<(u32, u32, ShedValue)>,
    /// The same by process and file, as far as there was room to tell.
    pub split: Vec<(ShedKey, ShedValue)>,
    /// All counters of each CPU at the same moment.
    pub counters: Vec<(u32, CpuStats)>,
}

impl Losses {
    /// Calls lost.
    pub fn total(&self) -> u64 {
        self.by_cpu.iter().map(|(_, _, value)| value.count).sum()
    }
}

/// The programs, loaded.
pub struct Probe {
    // Links before the object: programs are detached before they go.
    links: Vec<Link>,
    object: Object,
    slots: SlotRings,
    wide: WideRings,
    stats: Stats,
    hooks: Hooks,
    operations: Vec<operations::Choice>,
    cpus: usize,
    all_tasks: bool,
    faults: FaultHooks,
    paths: bool,
    spare: Vec<Vec<u8>>,
    mounts: Option<Mounts>,
    /// The array for what found no room may have something.
    counted_overflows: bool,
}

/// Counters that the kernel has room for.
const MAX_COUNTED: usize = 1 << 16;
/// Process of what was counted without one.
pub const NO_PROCESS: u32 = u32::MAX;

impl Probe {
    /// Loads the programs; nothing is recorded before [`Probe::attach`].
    pub fn load(options: &ProbeOptions) -> Result<Self, ProbeError> {
        if let Some(privilege) = missing_privilege() {
            return Err(privilege.into());
        }
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(ProbeError::NoBtf);
        }
        libbpf_rs::set_print(std::env::var_os("FATHOM_LIBBPF").map(|_| {
            (
                libbpf_rs::PrintLevel::Debug,
                (|_, m| eprint!("{m}")) as fn(libbpf_rs::PrintLevel, String),
            )
        }));
        let cpus = libbpf_rs::num_possible_cpus().map_err(|source| ProbeError::Refused {
            what: "counting CPUs".into(),
            source,
        })?;
        let per_cpu = (options.ring_mib as usize * (1 << 20)).next_power_of_two() / 64;
        // Records of variable length are rarer: a quarter of the memory, but
        // room for bursts of path names. A power of two, as the kernel wants.
        // Content that is sent takes all of it.
        let wide_mib = match options.content {
            Content::None | Content::Hash => (options.ring_mib / 4).max(2),
            Content::Send | Content::Plain => options.ring_mib.clamp(8, 1024),
        };
        let wide_bytes = (wide_mib << 20).next_power_of_two();

        let features = Features::read()?;
        let rings = wide_ring_maps(cpus, wide_bytes)?;
        // The newest programs that fit; older ones when the kernel refuses them
        // all the same. What it says of the first is what counts.
        let mut refused = None;
        let mut loaded = None;
        let room = Room {
            cpus,
            per_cpu,
            wide_bytes,
        };
        for variant in variant::loadable(&features)? {
            if let (false, Some(option)) = (variant.loops, options.filters.needing_loops()) {
                return Err(refused.unwrap_or(ProbeError::NoFilter(option)));
            }
            match load_variant(&variant, options, &features, &rings, &room, None) {
                Ok(programs) => {
                    loaded = Some(programs);
                    break;
                }
                Err(error @ ProbeError::NoContent) => return Err(error),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        let Some(Loaded {
            object,
            hooks,
            operations,
            faults,
        }) = loaded
        else {
            return Err(refused.unwrap_or(ProbeError::NoPrograms));
        };
        let wide = wide_rings(&object, rings)?;
        let slots = SlotRings::new(
            map(&object, "slots")?.as_fd(),
            map(&object, "cursors")?.as_fd(),
            cpus,
            per_cpu,
        )?;
        let stats = Stats::new(map(&object, "stats")?.as_fd(), cpus)?;
        Ok(Self {
            links: Vec::new(),
            slots,
            wide,
            stats,
            hooks,
            operations,
            cpus,
            all_tasks: options.all_tasks,
            faults,
            paths: options.detail != Detail::Raw || options.counters,
            spare: Vec::new(),
            // Without /proc files in other namespaces have no path here.
            mounts: Mounts::open().ok(),
            counted_overflows: false,
            object,
        })
    }

    /// Attaches the programs. A hook that the kernel refuses is noted in
    /// [`Probe::hooks`]; only without the system call hooks is it an error.
    pub fn attach(&mut self) -> Result<(), ProbeError> {
        self.links = self.hooks.attach(&mut self.object)?;
        for choice in &self.operations {
            let (link, hook) = choice.attach(&mut self.object);
            self.links.extend(link);
            self.hooks.list.push(hook);
        }
        let (links, hooks) = self.faults.attach(&mut self.object, self.cpus)?;
        self.links.extend(links);
        self.hooks.list.extend(hooks);
        Ok(())
    }

    /// The build of the programs that was chosen, and the hooks that were
    /// attached or refused; after [`Probe::stop`] with the runs that the kernel
    /// left out.
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks.list
    }

    /// Records task `pidfd` from the moment when it executes a program.
    pub fn record_from_exec(&self, pidfd: BorrowedFd<'_>) -> Result<(), ProbeError> {
        const TASK_WAITS_FOR_EXEC: u32 = 1;
        let tasks = map(&self.object, "tasks")?;
        let mut state = vec![0; tasks.value_size() as usize];
        // struct task_state: flags follow two pointers' worth of times and the
        // call's numbers.
        let at = std::mem::offset_of!(TaskStateHead, flags);
        state[at..at + 4].copy_from_slice(&TASK_WAITS_FOR_EXEC.to_ne_bytes());
        let refused = |source| ProbeError::Refused {
            what: "state for the command".into(),
            source,
        };
        // Task storage takes the descriptor, the map that stands in for it the id.
        let key = if tasks.map_type() == MapType::TaskStorage {
            pidfd.as_raw_fd().to_ne_bytes()
        } else {
            pid_of(pidfd)?.to_ne_bytes()
        };
        tasks.update(&key, &state, MapFlags::ANY).map_err(refused)?;
        let live = map(&self.object, ".data.live")?;
        live.update(&0u32.to_ne_bytes(), &1u64.to_ne_bytes(), MapFlags::ANY)
            .map_err(refused)
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
        // Twice: a thread that a task not yet taken in makes during the first
        // pass may come before the pass's position.
        for _ in 0..2 {
            self.iterate("adopt")?;
        }
        let chosen = (!self.all_tasks).then_some(pids);
        adopt::descriptions(chosen, self.paths)
    }

    fn iterate(&mut self, name: &str) -> Result<(), ProbeError> {
        let refused = |source| ProbeError::Refused {
            what: format!("the task iterator {name}"),
            source,
        };
        let program = self
            .object
            .progs_mut()
            .find(|program| program.name() == name)
            .ok_or(ProbeError::Object("iterator"))?;
        let link = program
            .attach_iter_with_opts(IterOpts::None)
            .map_err(refused)?;
        let mut iter = libbpf_rs::Iter::new(&link).map_err(refused)?;
        // The program writes nothing; reading runs it.
        std::io::copy(&mut iter, &mut std::io::sink())
            .map_err(|source| refused(libbpf_rs::Error::from(source)))?;
        Ok(())
    }

    /// Recorded tasks that are alive.
    pub fn live_tasks(&self) -> Result<u64, ProbeError> {
        let live = map(&self.object, ".data.live")?;
        let value = live
            .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(|source| ProbeError::Refused {
                what: "the count of tasks".into(),
                source,
            })?;
        Ok(value
            .and_then(|bytes| Some(u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?)))
            .unwrap_or(0))
    }

    /// Takes what the programs have written so far.
    pub fn drain(&mut self, out: &mut Vec<RawChunk>) {
        out.extend(self.mounts.as_mut().and_then(Mounts::changed));
        let spare = &mut self.spare;
        self.slots.drain(out, |bytes| match spare.pop() {
            Some(mut buffer) => {
                buffer.clear();
                buffer.reserve(bytes);
                buffer
            }
            None => Vec::with_capacity(bytes),
        });
        self.wide.drain(out);
    }

    /// Gives memory of a chunk back, to be used again.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < 2 * self.cpus {
            self.spare.push(buffer);
        }
    }

    /// Stops recording: detaches the programs and records the calls that have
    /// not returned. What is left to drain comes with the next
    /// [`Probe::drain`].
    pub fn stop(&mut self) -> Result<(), ProbeError> {
        if self.links.is_empty() {
            return Ok(());
        }
        self.links.clear();
        // A program that another CPU was in when it was detached ends within
        // microseconds; the kernel has no call that waits for it.
        std::thread::sleep(std::time::Duration::from_millis(20));
        self.hooks.count_skipped(&self.object);
        self.iterate("pending")
    }

    /// Counts so far.
    pub fn counters(&self) -> Counters {
        let mut total = Counters::default();
        for cpu in self.cpu_stats() {
            total.seen += cpu.calls();
            total.faults.0 += cpu.faults + cpu.faults_lost;
            total.faults.1 += cpu.faults_lost;
            total.faults_unknown += cpu.faults_unknown;
            total.writeback.0 += cpu.writebacks + cpu.writebacks_lost;
            total.writeback.1 += cpu.writebacks_lost;
            total.timed_ns += cpu.cost_ns;
            total.timed_calls += cpu.cost_calls;
            total.lost += cpu.calls_lost();
            total.compat += cpu.compat;
            total.shed_overflow += cpu.shed_overflow;
            total.file_retry += cpu.file_retry;
            total.task_lost += cpu.task_lost;
            total.untracked += cpu.untracked;
            total.scratch_busy += cpu.scratch_busy;
        }
        total
    }

    fn cpu_stats(&self) -> Vec<CpuStats> {
        let mut stats = self.stats.read();
        for (cpu, stats) in stats.iter_mut().enumerate() {
            stats.slot_calls = self.slots.written(cpu);
        }
        stats
    }

    /// Records that have been drained.
    pub fn crossed(&self) -> Crossed {
        let mut crossed = self.wide.crossed();
        // Page faults go through the slots, too.
        let faults: u64 = self.cpu_stats().iter().map(|cpu| cpu.faults).sum();
        crossed.calls += self.slots.taken.saturating_sub(faults);
        crossed.others += faults;
        crossed
    }

    /// Losses so far.
    pub fn losses(&self) -> Result<Losses, ProbeError> {
        let read = |what: &str, source| ProbeError::Refused {
            what: what.into(),
            source,
        };
        let lost = map(&self.object, "lost")?;
        let counters = self.cpu_stats();
        let mut losses = Losses {
            counters: (0..).zip(counters).collect(),
            ..Losses::default()
        };
        for cpu in 0..self.cpus as u32 {
            for call in (0..SYSCALLS.len() as u32).chain([LOST_WRITEBACK, LOST_FAULT]) {
                let key = (cpu * MAX_SYSCALLS + call).to_ne_bytes();
                let value = lost
                    .lookup(&key, MapFlags::ANY)
                    .map_err(|e| read("losses", e))?;
                if let Some(value) = value.as_deref().and_then(ShedValue::parse)
                    && value.count > 0
                {
                    losses.by_cpu.push((cpu, call, value));
                }
            }
        }
        if losses.by_cpu.is_empty() {
            return Ok(losses);
        }
        let shed = map(&self.object, "shed")?;
        for key in shed.keys() {
            let value = shed
                .lookup(&key, MapFlags::ANY)
                .map_err(|e| read("losses", e))?;
            if let (Some(key), Some(value)) = (
                ShedKey::parse(&key),
                value.as_deref().and_then(ShedValue::parse),
            ) {
                losses.split.push((key, value));
            }
        }
        Ok(losses)
    }

    /// Of a recording with counters: what was counted so far, by processor, call,
    /// process and file. What the kernel had no room to split has
    /// [`NO_PROCESS`] for a process.
    pub fn counted(&self) -> Result<Vec<(ShedKey, ShedValue)>, ProbeError> {
        let refused = |source| ProbeError::Refused {
            what: "the counters".into(),
            source,
        };
        let counted = map(&self.object, "counted")?;
        let mut values = Vec::new();
        for key in counted.keys() {
            let value = counted.lookup(&key, MapFlags::ANY).map_err(refused)?;
            if let (Some(key), Some(value)) = (
                ShedKey::parse(&key),
                value.as_deref().and_then(ShedValue::parse),
            ) {
                values.push((key, value));
            }
        }
        if values.len() < MAX_COUNTED && !self.counted_overflows {
            return Ok(values);
        }
        let rest = map(&self.object, "counted_rest")?;
        for cpu in 0..self.cpus as u32 {
            for syscall in 0..SYSCALLS.len() as u32 {
                let index = (cpu * MAX_SYSCALLS + syscall).to_ne_bytes();
                let value = rest.lookup(&index, MapFlags::ANY).map_err(refused)?;
                if let Some(value) = value.as_deref().and_then(ShedValue::parse)
                    && value.count > 0
                {
                    let key = ShedKey {
                        cpu,
                        syscall,
                        pid: NO_PROCESS,
                        file: 0,
                    };
                    values.push((key, value));
                }
            }
        }
        Ok(values)
    }

    /// Makes room: forgets counters of processes that have ended.
    pub fn forget_counted(&mut self, keys: &[ShedKey]) -> Result<(), ProbeError> {
        // What found no room before stays in the array for the rest.
        self.counted_overflows = true;
        let counted = map(&self.object, "counted")?;
        for key in keys {
            counted
                .delete(&key.to_bytes())
                .map_err(|source| ProbeError::Refused {
                    what: "the counters".into(),
                    source,
                })?;
        }
        Ok(())
    }

    /// Highest share of a CPU's slot ring that was ever in use, 0 to 1.
    pub fn ring_peak(&self) -> f64 {
        self.slots.peak as f64 / self.slots.capacity() as f64
    }
}

/// The first members of `struct task_state` (`bpf/include/maps.h`), which is
/// otherwise the kernel side's own.
#[repr(C)]
struct TaskStateHead {
    enter_ns: u64,
    file_ptr: u64,
    entry_pos: i64,
    number: u32,
    file: u32,
    file2: u32,
    call_flags: u32,
    flags: u32,
}

fn map<'a>(object: &'a Object, name: &'static str) -> Result<libbpf_rs::Map<'a>, ProbeError> {
    object
        .maps()
        .find(|map| map.name() == name)
        .ok_or(ProbeError::Object(name))
}

/// Sets sizes of maps and constants.
fn configure(open: &mut OpenObject, options: &ProbeOptions, room: &Room) -> Result<(), ProbeError> {
    let Room {
        cpus,
        per_cpu,
        wide_bytes,
    } = *room;
    let sizes = [
        ("slots", cpus * per_cpu),
        ("cursors", cpus),
        ("wide_rings", cpus),
        ("stats", cpus),
        // Two for each: bpf/include/content.h.
        (
            "content_scratches",
            if options.content == Content::None {
                1
            } else {
                2 * cpus
            },
        ),
        ("lost", cpus * MAX_SYSCALLS as usize),
        ("counted", if options.counters { MAX_COUNTED } else { 1 }),
        (
            "counted_rest",
            if options.counters {
                cpus * MAX_SYSCALLS as usize
            } else {
                1
            },
        ),
        ("rules", options.filters.rules().len().max(1)),
    ];
    let config = ProbeConfig {
        self_pid: std::process::id(),
        all_tasks: options.all_tasks.into(),
        all_file_types: options.selection.all_file_types.into(),
        detail: options.detail as u32,
        slots: per_cpu as u32,
        follow: (options.follow || options.all_tasks).into(),
        mnt_ns: mounts::own_namespace(),
        cpus: cpus as u32,
        aio: operations::selects_aio(&options.selection).into(),
        content: match options.content {
            Content::None => CONTENT_MODE_NONE,
            Content::Hash => CONTENT_MODE_HASH,
            Content::Send => CONTENT_MODE_SEND,
            Content::Plain => CONTENT_MODE_PLAIN,
        },
        content_max: options.content_max.min(MAX_CONTENT),
        content_room: wide_bytes / 4 * 3,
        counters: options.counters.into(),
        reserved: 0,
    };
    let constants = [
        (".rodata.config", config.to_bytes().to_vec()),
        (
            ".rodata.descs",
            descriptors(&options.selection, &options.filters),
        ),
        (".rodata.filter", options.filters.config.to_bytes().to_vec()),
        (
            ".rodata.opdescs",
            operations::descriptors(&options.selection),
        ),
    ];
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let refused = |source| ProbeError::Refused {
            what: format!("map {name}"),
            source,
        };
        if let Some((_, entries)) = sizes.iter().find(|(n, _)| *n == name) {
            map.set_max_entries(*entries as u32).map_err(refused)?;
        } else if let Some((_, bytes)) = constants.iter().find(|(n, _)| *n == name) {
            let value = map
                .initial_value_mut()
                .ok_or(ProbeError::Object("constants"))?;
            value
                .get_mut(..bytes.len())
                .ok_or(ProbeError::Object("room for constants"))?
                .copy_from_slice(bytes);
        }
    }
    Ok(())
}

/// One descriptor a system call number, then one a number of 32-bit programs.
fn descriptors(selection: &Selection, filters: &Filters) -> Vec<u8> {
    let mut bytes = vec![0; 2 * MAX_NUMBERS as usize * CallDesc::SIZE];
    let mut put = |number: usize, call: usize, mut desc: CallDesc| {
        // Renames are watched even when they are not recorded.
        desc.selected = selection.calls.contains(&call).into();
        let at = number * CallDesc::SIZE;
        if let Some(slot) = bytes.get_mut(at..at + CallDesc::SIZE) {
            slot.copy_from_slice(&desc.to_bytes());
        }
    };
    for (index, call) in SYSCALLS.iter().enumerate() {
        if let Some(number) = call.number().filter(|_| call.api == Api::Syscall) {
            put(number.into(), index, call.desc(index));
        }
    }
    if cfg!(target_arch = "x86_64") {
        for call in &I386 {
            if let Some((index, desc)) = call.desc() {
                put(MAX_NUMBERS as usize + usize::from(call.number), index, desc);
            }
        }
    }
    if operations::selects_aio(selection) {
        operations::watch_aio(&mut bytes);
    }
    if filters.by_user() {
        watch_credentials(&mut bytes);
    }
    bytes
}

/// How much room the programs have for what they write.
struct Room {
    /// Processors that the machine may have.
    cpus: usize,
    /// Slots a CPU.
    per_cpu: usize,
    /// Bytes of the wide ring of a CPU.
    wide_bytes: u32,
}

/// Programs that the kernel has taken.
struct Loaded {
    object: Object,
    hooks: Hooks,
    operations: Vec<operations::Choice>,
    faults: FaultHooks,
}

/// Marks the calls that change the user of a task, which are not recorded.
fn watch_credentials(descs: &mut [u8]) {
    let native = [libc::SYS_setuid, libc::SYS_setreuid, libc::SYS_setresuid].map(|n| n as usize);
    // setuid, setreuid and setresuid of 32-bit programs, with ids of 16 and of
    // 32 bits.
    let compat = [23, 70, 164, 213, 203, 208].map(|n| MAX_NUMBERS as usize + n);
    let compat = compat.into_iter().filter(|_| cfg!(target_arch = "x86_64"));
    for number in native.into_iter().chain(compat) {
        let at = number * CallDesc::SIZE;
        if let Some(slot) = descs.get_mut(at..at + CallDesc::SIZE)
            && let Some(mut desc) = CallDesc::parse(slot)
        {
            desc.credentials = 1;
            slot.copy_from_slice(&desc.to_bytes());
        }
    }
}

fn fill_rules(object: &Object, filters: &Filters) -> Result<(), ProbeError> {
    let rules = map(object, "rules")?;
    for (key, sign) in filters.rules() {
        rules
            .update(&key.to_bytes(), &sign.to_ne_bytes(), MapFlags::ANY)
            .map_err(|source| ProbeError::Refused {
                what: "a rule of a filter".into(),
                source,
            })?;
    }
    Ok(())
}

/// Loads one build of the programs, with the hooks that were chosen.
fn load_variant(
    variant: &Variant,
    options: &ProbeOptions,
    features: &Features,
    rings: &[MapHandle],
    room: &Room,
    refused_faults: Option<String>,
) -> Result<Loaded, ProbeError> {
    let mut open = ObjectBuilder::default()
        .name("fathom")
        .and_then(|builder| builder.open_memory(variant.object))
        .map_err(|source| ProbeError::Refused {
            what: "the eBPF object".into(),
            source,
        })?;
    configure(&mut open, options, room)?;
    if options.content != Content::None && !variant.takes_content {
        return Err(ProbeError::NoContent);
    }
    // Kernels before 5.10 want inner maps of the size of the first.
    for mut map in open.maps_mut() {
        if let (true, Some(ring)) = (map.name() == "wide_rings", rings.first()) {
            map.set_inner_map_fd(ring.as_fd())
                .map_err(|source| ProbeError::Refused {
                    what: "the map of the wide rings".into(),
                    source,
                })?;
        }
    }
    let mut hooks = Hooks::choose(&mut open, features)?;
    hooks.list.insert(0, programs(variant));
    let operations = operations::choose(&mut open, &options.selection);
    let faults = FaultHooks::prepare(&mut open, options.layers.pagecache, refused_faults)?;
    if std::env::var_os("FATHOM_LIBBPF").is_some() {
        for mut program in open.progs_mut() {
            // What the verifier had to do, in its log.
            program.set_log_level(4);
        }
    }
    match open.load() {
        Ok(object) => {
            fill_rules(&object, &options.filters)?;
            Ok(Loaded {
                object,
                hooks,
                operations,
                faults,
            })
        }
        // Perhaps only the programs for page faults.
        Err(source) if faults.are_loaded() => {
            let why = Some(source.to_string());
            load_variant(variant, options, features, rings, room, why)
        }
        Err(source) => Err(ProbeError::Refused {
            what: format!("the eBPF programs for Linux {}", variant.since),
            source,
        }),
    }
}

/// How the choice of programs stands in the session.
fn programs(variant: &Variant) -> Hook {
    Hook {
        name: format!("programs for Linux {} and newer", variant.since),
        attached: true,
        note: variant.cost.into(),
        skipped: 0,
    }
}

/// Id of the process behind a descriptor, in the namespace of this process.
fn pid_of(pidfd: BorrowedFd<'_>) -> Result<u32, ProbeError> {
    let info = format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd());
    let unknown = |source| ProbeError::NoProcess { pid: 0, source };
    let text = std::fs::read_to_string(info).map_err(unknown)?;
    text.lines()
        .find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok())
        .ok_or_else(|| unknown(std::io::Error::from_raw_os_error(libc::ESRCH)))
}

/// Makes a ring buffer a CPU.
fn wide_ring_maps(cpus: usize, bytes: u32) -> Result<Vec<MapHandle>, ProbeError> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    (0..cpus)
        .map(|_| {
            MapHandle::create(MapType::RingBuf, Some("fathom_wide"), 0, 0, bytes, &options).map_err(
                |source| ProbeError::Refused {
                    what: "the wide rings".into(),
                    source,
                },
            )
        })
        .collect()
}

/// Puts the ring buffers into the map of rings.
fn wide_rings(object: &Object, rings: Vec<MapHandle>) -> Result<WideRings, ProbeError> {
    let refused = |source| ProbeError::Refused {
        what: "the wide rings".into(),
        source,
    };
    let outer = map(object, "wide_rings")?;
    for (cpu, ring) in (0u32..).zip(&rings) {
        let fd = ring.as_fd().as_raw_fd().to_ne_bytes();
        outer
            .update(&cpu.to_ne_bytes(), &fd, MapFlags::ANY)
            .map_err(refused)?;
    }
    WideRings::new(rings).map_err(refused)
}
