//! Attach points: which programs fit this kernel, their state, and what is missing without them.
//! `rows` lists all programs.

mod faults;
mod layers;
mod perf;
mod rows;

use std::os::fd::{AsFd, AsRawFd};

use fathom_model::layers::Layer;
use fathom_model::meta::Hook;
use libbpf_rs::{Link, Object, OpenObject};

use crate::error::ProbeError;
use crate::features::Features;
use crate::kernel_functions::{KernelFunctionError, KernelFunctions};
use rows::{At, ROWS, Row};

pub(crate) use perf::open_event;

pub(crate) use faults::fault_config;
pub(crate) use layers::layer_config;

/// The consequence of missing stacks.
pub(crate) const NO_STACKS: &str = "call stacks are not recorded";

/// The consequence of a missing program for a function of the kernel.
pub(crate) const NO_FUNCTION: &str = "its time is not a separate slice";

/// The consequence of missing programs for libraries.
pub(crate) const NO_LIBRARY: &str = "calls of libraries are not recorded";

/// The consequence of a missing program for static probes.
pub(crate) const NO_USDT: &str = "spans of static probes are not recorded";

/// The consequence of the missing hooks of TLS libraries.
pub(crate) const NO_TLS: &str = "requests on encrypted connections are not recorded";

/// The consequence of the missing hook of counters.
pub(crate) const NO_COUNTERS: &str = "perf counters are not recorded: counts of other tasks while a request \
                           is off the CPU could not be separated from its own";

/// The feature that a hook belongs to. Programs of unselected features are not loaded; nor are
/// programs of optional features that the kernel refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    /// System calls and tasks: always wanted.
    Calls,
    /// Operations of io_uring.
    Uring,
    Aio,
    /// Page faults on mapped files, and write-back.
    Faults,
    /// Activity of requests in the page cache.
    Cache,
    /// Functions of VFS, file systems, the page cache and the block layer.
    Vfs,
    /// Functions of the kernel that the user names.
    Functions,
    /// Parts of file systems.
    Fs,
    /// Requests to FUSE servers.
    Fuse,
    /// Requests to NFS servers.
    Nfs,
    /// Block requests and their causes.
    Block,
    /// Interrupts.
    Irq,
    /// Waits.
    Sched,
    /// Call stacks.
    Stacks,
    /// Calls of libraries.
    Library,
    /// Static probes of programs.
    Usdt,
    /// Connections that libraries encrypt.
    Tls,
    Counters,
}

impl Feature {
    /// The features for a layer.
    pub(crate) fn of_layer(layer: Layer) -> &'static [Feature] {
        match layer {
            Layer::Syscall => &[Feature::Calls],
            Layer::Vfs => &[Feature::Vfs],
            Layer::PageCache => &[Feature::Faults, Feature::Cache],
            Layer::Fs => &[Feature::Fs],
            Layer::Fuse => &[Feature::Fuse],
            Layer::Nfs => &[Feature::Nfs],
            Layer::Block | Layer::Device => &[Feature::Block],
            Layer::Sched => &[Feature::Sched],
            Layer::Irq => &[Feature::Irq],
            Layer::User => &[
                Feature::Stacks,
                Feature::Library,
                Feature::Usdt,
                Feature::Tls,
            ],
            Layer::Cpu => &[Feature::Counters],
        }
    }

    /// Optional features. If the kernel refuses one, fathom loads the programs again without it.
    /// With each: its name and the data that is missing without it.
    pub(crate) const OPTIONAL: [(Feature, &str, &str); 15] = [
        (
            Feature::Faults,
            "page faults",
            "page faults on mapped files are not recorded",
        ),
        (
            Feature::Cache,
            "layer pagecache",
            "hits and misses of the page cache are not recorded",
        ),
        (Feature::Vfs, LAYER_VFS, NO_FUNCTIONS),
        (Feature::Functions, "functions", NO_FUNCTION),
        (
            Feature::Fs,
            "layer fs",
            "slices of file systems are not recorded, and direct I/O of io_uring and AIO is \
             attributed to the submitting call",
        ),
        (
            Feature::Fuse,
            "layer fuse",
            "requests to FUSE servers are not recorded",
        ),
        (
            Feature::Nfs,
            "layer nfs",
            "requests to NFS servers are not recorded",
        ),
        (
            Feature::Block,
            "layer block",
            "block requests are not recorded",
        ),
        (
            Feature::Irq,
            "layer irq",
            "interrupts are not recorded; a wake-up by an interrupt may be attributed to the \
             interrupted thread",
        ),
        (Feature::Sched, "layer sched", "waits are not recorded"),
        (Feature::Stacks, "stacks", NO_STACKS),
        (Feature::Library, "library", NO_LIBRARY),
        (Feature::Usdt, "usdt", NO_USDT),
        (Feature::Tls, "tls", NO_TLS),
        (Feature::Counters, "counters", NO_COUNTERS),
    ];
}

/// Beginning of the names of the hooks of functions of the kernel.
pub const FUNCTION: &str = "function ";
/// Beginning of the names of the hooks of libraries.
pub const LIBRARY: &str = "library ";
/// Beginning of the names of the hooks of static probes.
pub const USDT: &str = "usdt ";
/// Beginning of the names of the files that have the variable with span contexts.
pub const CONTEXT: &str = "otel-context";
/// Beginning of the names of the hooks of TLS libraries.
pub const TLS: &str = "tls ";
/// Name for all hooks of functions.
pub const LAYER_VFS: &str = "layer vfs";
const NO_FUNCTIONS: &str = "time in VFS, and in functions of file systems and the page \
                            cache, is not a separate slice";

/// A program that was chosen for a row.
struct Chosen {
    program: &'static str,
    at: At,
    row: &'static Row,
    /// The function of the kernel, if the user names it.
    function: Option<String>,
}

/// The hooks of one recording.
#[derive(Default)]
pub(crate) struct Hooks {
    /// The chosen hooks and their state.
    pub(crate) list: Vec<Hook>,
    /// In the order of attaching.
    chosen: Vec<Chosen>,
    /// Attached programs and their hooks in `list`.
    attached: Vec<(&'static str, usize)>,
    /// Features with attach points of file systems that the kernel does not have.
    absent: Vec<Feature>,
}

/// A program of the object and its section.
struct Built {
    program: String,
    section: String,
}

impl Hooks {
    /// Chooses a program for each hook of the features in `wanted`, before loading. Disables
    /// the other programs and those whose attach point this kernel lacks, because a single one
    /// would make loading the object fail. Programs that are not in the list (iterators) stay.
    ///
    /// # Errors
    /// When the kernel lacks the attach point of a required hook.
    pub(crate) fn choose(
        open: &mut OpenObject,
        features: &Features,
        wanted: &[Feature],
        named: &KernelFunctions,
    ) -> Result<Self, ProbeError> {
        let built: Vec<Built> = open
            .progs()
            .map(|program| Built {
                program: program.name().to_string_lossy().into_owned(),
                section: program.section().to_string_lossy().into_owned(),
            })
            .collect();
        let section = |name: &str| {
            let found = built.iter().find(|b| b.program == name);
            found.map(|b| b.section.as_str())
        };
        let is_built = |row: &Row| row.forms.iter().any(|f| section(f.program).is_some());
        let mut hooks = Hooks::default();
        let functions = features.hooks_functions() || !wanted.contains(&Feature::Vfs);
        if !functions {
            let why = "this kernel does not allow programs to attach to functions";
            hooks.miss(LAYER_VFS, NO_FUNCTIONS, why);
        }
        let is_wanted = |row: &&Row| match row.feature {
            Feature::Vfs => functions && wanted.contains(&Feature::Vfs),
            // See choose_functions().
            Feature::Functions => false,
            feature => wanted.contains(&feature),
        };
        for row in ROWS.iter().filter(is_wanted) {
            // If this build of the programs lacks calls or a feature, the note of the build
            // (variant.rs) says so; the kernel is not the cause.
            let of_feature = |other: &&Row| other.feature == row.feature;
            let of_calls = row.feature == Feature::Calls;
            if !is_built(row) && (of_calls || !ROWS.iter().filter(of_feature).any(is_built)) {
                continue;
            }
            let fitting = row.forms.iter().find(|form| {
                section(form.program).is_some_and(|section| fits(form.at, section, features))
            });
            match fitting {
                // Several rows can share a program.
                Some(form) if hooks.has(form.program) => {}
                Some(form) => hooks.chosen.push(Chosen {
                    program: form.program,
                    at: form.at,
                    row,
                    function: None,
                }),
                None => {
                    let usual = |form: &&rows::Form| {
                        !matches!(form.at, At::Classic) && section(form.program).is_some()
                    };
                    let named = row.forms.iter().find(usual).or(row.forms.last());
                    let name = named.map_or_else(String::new, |form| {
                        let section = section(form.program).unwrap_or(form.program);
                        place(form.at, section)
                    });
                    let sections = row.forms.iter().filter_map(|form| section(form.program));
                    if sections.into_iter().any(is_of_absent_file_system) {
                        hooks.absent.push(row.feature);
                        continue;
                    }
                    if row.required {
                        return Err(ProbeError::NoHook(name));
                    }
                    hooks.miss(&name, row.without, "this kernel lacks the attach point");
                }
            }
        }
        hooks.drop_useless_faults();
        if wanted.contains(&Feature::Functions) {
            hooks.choose_functions(open, features, named)?;
        }
        for mut program in open.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let mut listed = ROWS.iter().flat_map(|row| row.forms);
            if listed.any(|form| form.program == name) && !hooks.has(&name) {
                program.set_autoload(false);
            }
        }
        Ok(hooks)
    }

    /// Chooses the programs for functions that the user names, and sets where they attach.
    ///
    /// # Errors
    /// When there is no such function.
    fn choose_functions(
        &mut self,
        open: &mut OpenObject,
        features: &Features,
        named: &KernelFunctions,
    ) -> Result<(), ProbeError> {
        if !features.hooks_functions() {
            for function in named.iter() {
                let why = "this kernel does not allow programs to attach to functions";
                self.miss(&format!("{FUNCTION}{}", function.name), NO_FUNCTION, why);
            }
            return Ok(());
        }
        for row in ROWS.iter().filter(|row| row.feature == Feature::Functions) {
            let Some(form) = row.forms.first() else {
                continue;
            };
            let Some(function) = named.of_program(form.program) else {
                continue;
            };
            let name = function.name.clone();
            let mut programs = open.progs_mut();
            let program = programs.find(|program| program.name() == form.program);
            let Some(mut program) = program else {
                let why = "the programs for this kernel have no layers";
                self.miss(&format!("{FUNCTION}{name}"), NO_FUNCTION, why);
                continue;
            };
            if !features.has_place_in(&name) {
                return Err(KernelFunctionError::Missing(name).into());
            }
            let set = program.set_attach_target(0, Some(name.clone()));
            set.map_err(|source| ProbeError::Refused {
                what: format!("function {name}"),
                source,
            })?;
            self.chosen.push(Chosen {
                program: form.program,
                at: form.at,
                row,
                function: Some(name),
            });
        }
        Ok(())
    }

    /// Whether `program` was chosen.
    pub(crate) fn has(&self, program: &str) -> bool {
        self.chosen.iter().any(|chosen| chosen.program == program)
    }

    /// Whether anything was chosen for `feature`.
    pub(crate) fn serve(&self, feature: Feature) -> bool {
        self.chosen.iter().any(|c| c.row.feature == feature)
    }

    /// Whether `program` was attached.
    pub(crate) fn is_attached(&self, program: &str) -> bool {
        self.attached.iter().any(|(name, _)| *name == program)
    }

    /// Notes that `name` is missing, with the consequences and the cause.
    pub(crate) fn miss(&mut self, name: &str, without: &str, why: &str) {
        let note = format!("{without} ({why})");
        if self.list.iter().any(|h| h.name == name && h.note == note) {
            return;
        }
        self.list.push(Hook {
            name: name.to_string(),
            attached: false,
            note,
            skipped: 0,
        });
    }

    /// Attaches the chosen and loaded programs. If the kernel refuses an optional one, this is
    /// noted; if it refuses a required one, this is an error.
    pub(crate) fn attach(
        &mut self,
        object: &mut Object,
        cpus: usize,
    ) -> Result<Vec<Link>, ProbeError> {
        let mut links = Vec::new();
        let at_once = |chosen: &&Chosen| !matches!(chosen.at, At::Places { .. });
        for chosen in self.chosen.iter().filter(at_once) {
            let program = object
                .progs_mut()
                .find(|program| program.name() == chosen.program)
                .ok_or(ProbeError::Object("program"))?;
            let name = chosen.name(&program.section().to_string_lossy());
            let attached = match chosen.at {
                At::Perf { config, .. } => perf::attach(&program, config, cpus, &mut links),
                _ => program.attach().map(|link| links.push(link)),
            };
            let (attached, note) = match attached {
                Ok(()) => (true, chosen.note()),
                Err(source) if chosen.row.required => {
                    return Err(ProbeError::Refused { what: name, source });
                }
                Err(source) => (false, format!("{} ({source})", chosen.row.without)),
            };
            if attached {
                self.attached.push((chosen.program, self.list.len()));
            }
            self.list.push(Hook {
                name,
                attached,
                note,
                skipped: 0,
            });
        }
        Ok(links)
    }

    /// Reads from the kernel how often it skipped a program.
    pub(crate) fn count_skipped(&mut self, object: &Object) {
        for (name, at) in &self.attached {
            let program = object.progs().find(|program| program.name() == *name);
            if let (Some(program), Some(hook)) = (program, self.list.get_mut(*at)) {
                hook.skipped = skipped(program.as_fd().as_raw_fd());
            }
        }
    }
}

impl Chosen {
    /// Name of the attach point: from the section of its program, or the function that the user
    /// names.
    fn name(&self, section: &str) -> String {
        match &self.function {
            Some(function) => format!("{FUNCTION}{function}"),
            None => place(self.at, section),
        }
    }

    fn note(&self) -> String {
        match (self.at, self.row.forms.last()) {
            (At::Classic, Some(usual)) => format!(
                "instead of tp_btf/{}, because this kernel skips runs of it; costs more",
                usual.program
            ),
            _ => String::new(),
        }
    }
}

/// Whether `program` serves `feature`.
pub(crate) fn is_of(program: &str, feature: Feature) -> bool {
    let of_feature = ROWS.iter().filter(|row| row.feature == feature);
    of_feature
        .flat_map(|row| row.forms)
        .any(|form| form.program == program)
}

/// Name of an attach point: the section of its program, or the perf event.
fn place(at: At, section: &str) -> String {
    match at {
        At::Perf { event, .. } => format!("perf/{event}"),
        _ => section.to_string(),
    }
}

/// Whether a program with this section can be attached there.
fn fits(at: At, section: &str, features: &Features) -> bool {
    let exists = || match section.split_once('/') {
        Some(("tp_btf", tracepoint)) => features.has_tracepoint(tracepoint),
        Some(("tracepoint", event)) => features.has_event(event),
        Some(("fentry" | "fexit", function)) => features.has_place_in(function),
        _ => true,
    };
    match at {
        At::Section => exists(),
        At::Classic => features.preempts_tracepoints() && exists(),
        At::Typed { arguments, first } => section
            .strip_prefix("tp_btf/")
            .is_some_and(|name| features.tracepoint_takes(name, arguments, first)),
        At::Perf { config, .. } => perf::is_there(config),
        At::Places { multi } => !multi || features.enumerator("BPF_TRACE_UPROBE_MULTI").is_some(),
    }
}

/// Whether the attach point belongs to a file system that the kernel does not have or has not
/// loaded. Then no data is missing without it.
fn is_of_absent_file_system(place: &str) -> bool {
    let name = place.rsplit('/').next().unwrap_or_default();
    let file_system = match name.split('_').next() {
        // The journal of ext4.
        Some("jbd2") => "ext4",
        // Calls of procedures at servers, of which NFS's are recorded.
        Some("rpc") => "nfs",
        Some(name @ ("ext4" | "xfs" | "btrfs")) => name,
        _ => return false,
    };
    std::fs::read_to_string("/proc/filesystems").is_ok_and(|known| {
        !known
            .lines()
            .any(|line| line.split_whitespace().next_back() == Some(file_system))
    })
}

/// Number of runs of the program `fd` that the kernel skipped; 0 before 5.12, where the kernel
/// reports no number and skips none.
fn skipped(fd: i32) -> u64 {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut bytes = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: `info` is as long as `bytes` says and outlives the call, and all
    // its pointers are null with counts of zero, so that nothing else is written.
    let refused = unsafe { libbpf_sys::bpf_prog_get_info_by_fd(fd, &mut info, &mut bytes) };
    if refused == 0 {
        info.recursion_misses
    } else {
        0
    }
}
