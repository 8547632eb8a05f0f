//! Loading the eBPF programs: which build, which hooks, how much memory.

use fathom_model::layers::Layer;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::thread::ScopedJoinHandle;

use fathom_model::abi::{
    CONTENT_CHUNK, CONTENT_MODE_HASH, CONTENT_MODE_NONE, CONTENT_MODE_PLAIN, CONTENT_MODE_SEND,
    MAX_CONTENT, MAX_SYSCALLS, ProbeConfig,
};
use fathom_model::meta::{Hook, PerfCounter};
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, OpenObject};

use crate::call_counters::MAX_COUNTED;
use crate::error::ProbeError;
use crate::features::Features;
use crate::filter::Filters;
use crate::hooks::{self, Feature, Hooks, fault_config, layer_config};
use crate::maps::map;
use crate::options::ProbeOptions;
use crate::perf_counters::PerfCounters;
use crate::pod_rules;
use crate::rings::{WideRingMaps, WideRings};
use crate::variant::{self, Variant};
use crate::{Content, descriptors, kernel_types, missing_privilege, mounts, refused};

/// Processes whose threads have span contexts, or might have.
const MAX_CONTEXTS: usize = 16_384;

/// Loads the programs that fit this kernel, and makes the rings.
///
/// # Errors
/// When the kernel can't record, or refuses all builds of the programs.
pub(crate) fn load(options: &ProbeOptions) -> Result<(Loaded, WideRings, Room), ProbeError> {
    if let Some(privilege) = missing_privilege() {
        return Err(privilege.into());
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(ProbeError::NoBtf);
    }
    refused::listen();
    let cpus = libbpf_rs::num_possible_cpus().map_err(|source| ProbeError::Refused {
        what: "counting CPUs".into(),
        source,
    })?;
    let per_cpu = (options.ring_mib as usize * (1 << 20)).next_power_of_two() / 64;
    // Records of variable length are rarer: a quarter of the memory, but
    // room for bursts of path names. A power of two, as the kernel wants.
    // Content that is sent takes all of it, as do the beginnings of messages.
    let wide_mib = match options.content {
        Content::None | Content::Hash if options.spans == 0 => (options.ring_mib / 4).max(2),
        _ => options.ring_mib.clamp(8, 1024),
    };
    let wide_bytes = (wide_mib << 20).next_power_of_two();

    let features = Features::read()?;
    let rings = WideRingMaps::new(cpus, wide_bytes)?;
    let (perf_counters, asked) = options.perf_counters.there(cpus);
    let room = Room {
        cpus,
        per_cpu,
        wide_bytes,
        perf_counters,
    };
    let (filled, loaded) = std::thread::scope(|threads| {
        let thread = std::thread::Builder::new().name("fathom-rings".to_owned());
        let fills = thread.spawn_scoped(threads, || rings.fill());
        let loaded = load_newest(options, &features, &rings, &room);
        let filled = match fills.map(ScopedJoinHandle::join) {
            Ok(Ok(filled)) => filled,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // The system allows no other thread.
            Err(_) => rings.fill(),
        };
        (filled, loaded)
    });
    let mut loaded = loaded?;
    filled?;
    loaded.perf_counters = asked;
    Ok((loaded, WideRings::new(rings)?, room))
}

/// Loads the newest programs that fit, older ones if the kernel still refuses them. The error is of the
/// first attempt.
fn load_newest(
    options: &ProbeOptions,
    features: &Features,
    rings: &WideRingMaps,
    room: &Room,
) -> Result<Loaded, ProbeError> {
    let mut refused = None;
    for variant in variant::loadable(features)? {
        if let (false, Some(option)) = (variant.loops, options.filters.needing_loops()) {
            return Err(refused.unwrap_or(ProbeError::NoFilter(option)));
        }
        match load_variant(&variant, options, features, rings, room) {
            Ok(loaded) => return Ok(loaded),
            Err(
                error @ (ProbeError::NoContent
                | ProbeError::NoSpans
                | ProbeError::NoContexts
                | ProbeError::NoLibrary
                | ProbeError::NoUsdt),
            ) => return Err(error),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or(ProbeError::NoPrograms))
}

/// Sets sizes of maps and constants.
fn configure(
    open: &mut OpenObject,
    options: &ProbeOptions,
    room: &Room,
    hooks: &Hooks,
    features: &Features,
) -> Result<(), ProbeError> {
    let Room {
        cpus,
        per_cpu,
        wide_bytes,
        ref perf_counters,
        ..
    } = *room;
    let none = PerfCounters::default();
    let perf_counters = if hooks.serve(Feature::Counters) {
        perf_counters
    } else {
        &none
    };
    let block = |entries: usize| {
        if hooks.serve(Feature::Block) {
            entries
        } else {
            1
        }
    };
    let counts = options.counters || options.tail;
    let sizes = [
        ("slots", cpus * per_cpu),
        ("cursors", cpus),
        ("stats", cpus),
        // Two for each: bpf/include/content.h.
        (
            "content_scratches",
            if options.content == Content::None && options.spans == 0 {
                1
            } else {
                2 * cpus
            },
        ),
        (
            "streams",
            if descriptors::selects_streams(options) {
                65_536
            } else {
                1
            },
        ),
        (
            "context_places",
            if options.contexts { MAX_CONTEXTS } else { 1 },
        ),
        ("lost", cpus * MAX_SYSCALLS as usize),
        ("counted", if counts { MAX_COUNTED } else { 1 }),
        (
            "counted_rest",
            if counts {
                cpus * MAX_SYSCALLS as usize
            } else {
                1
            },
        ),
        ("rules", room_for_rules(&options.filters)),
        ("bios", block(65_536)),
        ("requests", block(32_768)),
        ("dirtiers", block(65_536)),
        ("known_inodes", block(65_536)),
        ("perf_events", (perf_counters.len() * cpus).max(1)),
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
        aio: descriptors::selects_aio(&options.selection).into(),
        content: match options.content {
            Content::None => CONTENT_MODE_NONE,
            Content::Hash => CONTENT_MODE_HASH,
            Content::Send => CONTENT_MODE_SEND,
            Content::Plain => CONTENT_MODE_PLAIN,
        },
        content_max: options.content_max.min(MAX_CONTENT),
        content_room: wide_bytes / 4 * 3,
        counters: options.counters.into(),
        stacks: hooks.serve(Feature::Stacks).into(),
        perf_counters: perf_counters.bits(),
        perf_values: perf_counters.len() as u32,
        tail: options.tail.into(),
        network: descriptors::selects_network(&options.selection).into(),
        sockets: descriptors::selects_sockets(&options.selection).into(),
        streams: descriptors::selects_streams(options).into(),
        library: hooks.serve(Feature::Library).into(),
        spans: options.spans.min(CONTENT_CHUNK),
        contexts: options.contexts.into(),
        reserved: 0,
    };
    // In the sections that the kernel side has for them.
    let constants = [
        (".rodata.config", config.to_bytes().to_vec()),
        (
            ".rodata.descs",
            descriptors::of_calls(&options.selection, &options.filters),
        ),
        (".rodata.faults", fault_config(hooks).to_bytes().to_vec()),
        (
            ".rodata.layers",
            layer_config(hooks, options.layers, features)
                .to_bytes()
                .to_vec(),
        ),
        (".rodata.filter", options.filters.config.to_bytes().to_vec()),
        (
            ".rodata.opdescs",
            descriptors::of_operations(&options.selection),
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

/// How much room the programs have for what they write, and what the machine has for them.
pub(crate) struct Room {
    /// Processors that the machine may have.
    pub(crate) cpus: usize,
    pub(crate) per_cpu: usize,
    /// Bytes of the wide ring of a CPU.
    pub(crate) wide_bytes: u32,
    /// Counters of perf that are asked for and there.
    pub(crate) perf_counters: PerfCounters,
}

/// Programs that the kernel has taken.
pub(crate) struct Loaded {
    pub(crate) object: Object,
    pub(crate) hooks: Hooks,
    /// Counters that were asked for, and what became of them.
    pub(crate) perf_counters: Vec<PerfCounter>,
}

fn room_for_rules(filters: &Filters) -> usize {
    let later = match filters.by_pod() {
        Some(_) => pod_rules::ROOM,
        None => 0,
    };
    (filters.rules().len() + later).max(1)
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

/// A feature, what it is called, and what is missing without it.
type Optional = (Feature, &'static str, &'static str);

/// Loads one build of the programs, with the hooks that were chosen; optional
/// features of which the kernel refuses a program are left out.
fn load_variant(
    variant: &Variant,
    options: &ProbeOptions,
    features: &Features,
    rings: &WideRingMaps,
    room: &Room,
) -> Result<Loaded, ProbeError> {
    let mut rest = wanted(options);
    if !room.perf_counters.is_empty() {
        rest.push(Feature::Counters);
    }
    let mut missing: Vec<(Optional, String)> = Vec::new();
    loop {
        refused::take();
        let error = match try_variant(variant, options, features, rings, room, &rest) {
            Ok(mut loaded) => {
                for ((_, name, without), why) in missing {
                    loaded.hooks.miss(name, without, &why);
                }
                return Ok(loaded);
            }
            Err(Refusal::Before(error)) => return Err(error),
            Err(Refusal::Load(error)) => error,
        };
        let program = refused::take();
        let left_out = optional_of(program.as_deref(), &rest);
        if left_out.is_empty() {
            return Err(error);
        }
        let why = match &program {
            Some(program) => format!("program {program}: {error}"),
            None => error.to_string(),
        };
        rest.retain(|feature| left_out.iter().all(|optional| optional.0 != *feature));
        missing.extend(left_out.into_iter().map(|optional| (optional, why.clone())));
    }
}

/// The optional ones among `wanted` features to which the refused `program`
/// belongs; all of them when it was no program that the kernel refused, but
/// something that they may have asked too much of.
fn optional_of(program: Option<&str>, wanted: &[Feature]) -> Vec<Optional> {
    let of_program = |feature| program.is_none_or(|program| hooks::is_of(program, feature));
    Feature::OPTIONAL
        .into_iter()
        .filter(|optional| wanted.contains(&optional.0) && of_program(optional.0))
        .collect()
}

/// The features that these options ask for.
fn wanted(options: &ProbeOptions) -> Vec<Feature> {
    // Renames through io_uring are watched even when they are not recorded.
    let mut wanted = vec![Feature::Uring];
    if descriptors::selects_aio(&options.selection) {
        wanted.push(Feature::Aio);
    }
    for layer in options.layers.iter() {
        wanted.extend(Feature::of_layer(layer));
    }
    // Direct I/O identifies the operation that a block request belongs to.
    if options.layers.has(Layer::Block) {
        wanted.push(Feature::Fs);
    }
    // An interrupt that wakes a thread must not pass for the thread that it
    // interrupted.
    if options.layers.has(Layer::Sched) {
        wanted.push(Feature::Irq);
    }
    if options.stacks {
        wanted.push(Feature::Stacks);
    }
    if !options.functions.is_empty() {
        wanted.push(Feature::Functions);
    }
    if !options.library.is_empty() {
        wanted.push(Feature::Library);
    }
    if !options.usdt.is_empty() {
        wanted.push(Feature::Usdt);
    }
    if options.tls {
        wanted.push(Feature::Tls);
    }
    wanted
}

/// Why a build was not loaded.
enum Refusal {
    /// The kernel took the object apart and refused it.
    Load(ProbeError),
    /// It did not come so far.
    Before(ProbeError),
}

impl From<ProbeError> for Refusal {
    fn from(error: ProbeError) -> Self {
        Refusal::Before(error)
    }
}

fn try_variant(
    variant: &Variant,
    options: &ProbeOptions,
    features: &Features,
    rings: &WideRingMaps,
    room: &Room,
    wanted: &[Feature],
) -> Result<Loaded, Refusal> {
    let refused = |what: &str| {
        let what = what.to_string();
        move |source| ProbeError::Refused { what, source }
    };
    let types = kernel_types::file_for(variant.object, &features.kernel)?;
    let mut open = ObjectBuilder::default()
        .name("fathom")
        .and_then(|builder| builder.btf_custom_path(format!("/proc/self/fd/{}", types.as_raw_fd())))
        .and_then(|builder| builder.open_memory(variant.object))
        .map_err(refused("the eBPF object"))?;
    if let (false, Some(error)) = (variant.reads_programs, reading_programs(options)) {
        return Err(error.into());
    }
    let mut hooks = Hooks::choose(&mut open, features, wanted, &options.functions)?;
    hooks.list.insert(0, programs(variant));
    configure(&mut open, options, room, &hooks, features)?;
    for mut map in open.maps_mut() {
        if map.name() == "wide_rings" {
            map.reuse_fd(rings.by_cpu.as_fd())
                .map_err(refused("the map of the wide rings"))?;
        }
    }
    if std::env::var_os("FATHOM_LIBBPF").is_some() {
        for mut program in open.progs_mut() {
            // The verifier's statistics, in its log.
            program.set_log_level(4);
        }
    }
    let what = format!("the eBPF programs for Linux {}", variant.since);
    let object = open
        .load()
        .map_err(|source| Refusal::Load(refused(&what)(source)))?;
    fill_rules(&object, &options.filters)?;
    Ok(Loaded {
        object,
        hooks,
        perf_counters: Vec::new(),
    })
}

/// The first option that needs programs which read the memory of traced programs or attach to their code, as
/// the error without such programs.
fn reading_programs(options: &ProbeOptions) -> Option<ProbeError> {
    [
        (options.content != Content::None, ProbeError::NoContent),
        (options.spans > 0, ProbeError::NoSpans),
        (options.contexts, ProbeError::NoContexts),
        (!options.library.is_empty(), ProbeError::NoLibrary),
        (!options.usdt.is_empty(), ProbeError::NoUsdt),
    ]
    .into_iter()
    .find_map(|(asked, error)| asked.then_some(error))
}

/// The choice of programs in the metadata of the session.
fn programs(variant: &Variant) -> Hook {
    Hook {
        name: format!("programs for Linux {} and newer", variant.since),
        attached: true,
        note: variant.cost.into(),
        skipped: 0,
    }
}
