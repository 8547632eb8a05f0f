//! Where the programs hang: which of them fit this kernel, what became of them,
//! and what is missing without them. `rows` lists them all.

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
use rows::{At, ROWS, Row};

pub(crate) use perf::open_event;

pub(crate) use faults::fault_config;
pub(crate) use layers::layer_config;

/// What is missing without stacks.
pub(crate) const NO_STACKS: &str = "from where in its program a call was made is not recorded";

/// What is missing without the hook of counters.
pub(crate) const NO_COUNTERS: &str = "counters of perf are not recorded: what others do while a request is \
                           off the CPU could not be told from its own";

/// What hooks serve. The programs of a feature that is not wanted are not
/// loaded; of those, the optional ones, that the kernel refuses neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    /// System calls and tasks: always wanted.
    Calls,
    /// Operations of io_uring.
    Uring,
    Aio,
    /// Page faults on mapped files, and write-back.
    Faults,
    /// What requests do in the page cache.
    Cache,
    /// Functions of VFS, file systems, the page cache and the block layer.
    Vfs,
    /// Parts of file systems.
    Fs,
    /// Requests to FUSE servers.
    Fuse,
    /// Requests to devices, and who caused them.
    Block,
    /// Interrupts.
    Irq,
    /// Waits.
    Sched,
    /// From where in their programs calls were made.
    Stacks,
    Counters,
}

impl Feature {
    /// What of a layer is recorded by hooks of its own.
    pub(crate) fn of_layer(layer: Layer) -> &'static [Feature] {
        match layer {
            Layer::Syscall => &[Feature::Calls],
            Layer::Vfs => &[Feature::Vfs],
            Layer::PageCache => &[Feature::Faults, Feature::Cache],
            Layer::Fs => &[Feature::Fs],
            Layer::Fuse => &[Feature::Fuse],
            Layer::Block | Layer::Device => &[Feature::Block],
            Layer::Sched => &[Feature::Sched],
            Layer::Irq => &[Feature::Irq],
            Layer::User => &[Feature::Stacks],
            Layer::Cpu => &[Feature::Counters],
        }
    }

    /// Features without which the programs are loaded again when the kernel
    /// refuses them, and what is missing then.
    pub(crate) const OPTIONAL: [(Feature, &str, &str); 10] = [
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
        (
            Feature::Fs,
            "layer fs",
            "parts of file systems are not recorded, and direct I/O of io_uring and AIO is put \
             down to the call that submits it",
        ),
        (
            Feature::Fuse,
            "layer fuse",
            "requests to FUSE servers are not recorded",
        ),
        (
            Feature::Block,
            "layer block",
            "requests to devices are not recorded",
        ),
        (
            Feature::Irq,
            "layer irq",
            "interrupts are not recorded, and may pass for the thread that they interrupted as \
             what woke another",
        ),
        (Feature::Sched, "layer sched", "waits are not recorded"),
        (Feature::Stacks, "stacks", NO_STACKS),
        (Feature::Counters, "counters", NO_COUNTERS),
    ];
}

/// How the hooks of functions are called together.
pub const LAYER_VFS: &str = "layer vfs";
const NO_FUNCTIONS: &str = "time in VFS, and in the functions of file systems and of the page \
                            cache, is not told apart";

/// A program that was chosen for a row.
struct Chosen {
    program: &'static str,
    at: At,
    row: &'static Row,
}

/// The hooks of one recording.
#[derive(Default)]
pub(crate) struct Hooks {
    /// What was chosen, and what became of it.
    pub(crate) list: Vec<Hook>,
    /// In the order of attaching.
    chosen: Vec<Chosen>,
    /// Attached programs and their hooks in `list`.
    attached: Vec<(&'static str, usize)>,
}

/// A program of the object and its section.
struct Built {
    program: String,
    section: String,
}

impl Hooks {
    /// Chooses a program for each hook of the features in `wanted`, before loading;
    /// has the others left out, and those whose place this kernel does not have:
    /// one of them would keep the whole object from being loaded. Programs that
    /// are not in the list (iterators) stay.
    ///
    /// # Errors
    /// When there is no place for a hook without which nothing can be recorded.
    pub(crate) fn choose(
        open: &mut OpenObject,
        features: &Features,
        wanted: &[Feature],
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
            let why = "this kernel lets no program hook its functions";
            hooks.miss(LAYER_VFS, NO_FUNCTIONS, why);
        }
        let is_wanted = |row: &&Row| {
            wanted.contains(&row.feature) && (functions || row.feature != Feature::Vfs)
        };
        for row in ROWS.iter().filter(is_wanted) {
            // What a build does not have of calls, or that it has nothing of a
            // feature, its note says (variant.rs): the kernel is not to blame.
            let of_feature = |other: &&Row| other.feature == row.feature;
            let of_calls = row.feature == Feature::Calls;
            if !is_built(row) && (of_calls || !ROWS.iter().filter(of_feature).any(is_built)) {
                continue;
            }
            let fitting = row.forms.iter().find(|form| {
                section(form.program).is_some_and(|section| fits(form.at, section, features))
            });
            match fitting {
                // Several rows have it.
                Some(form) if hooks.has(form.program) => {}
                Some(form) => hooks.chosen.push(Chosen {
                    program: form.program,
                    at: form.at,
                    row,
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
                        continue;
                    }
                    if row.required {
                        return Err(ProbeError::NoHook(name));
                    }
                    hooks.miss(&name, row.without, "this kernel has no such place");
                }
            }
        }
        hooks.drop_useless_faults();
        for mut program in open.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let mut listed = ROWS.iter().flat_map(|row| row.forms);
            if listed.any(|form| form.program == name) && !hooks.has(&name) {
                program.set_autoload(false);
            }
        }
        Ok(hooks)
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

    /// Notes that `name` is not there, what is missing without it, and why.
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

    /// Attaches the programs that were chosen and loaded. What the kernel refuses
    /// is noted; only without the required ones is it an error.
    pub(crate) fn attach(
        &mut self,
        object: &mut Object,
        cpus: usize,
    ) -> Result<Vec<Link>, ProbeError> {
        let mut links = Vec::new();
        for chosen in &self.chosen {
            let program = object
                .progs_mut()
                .find(|program| program.name() == chosen.program)
                .ok_or(ProbeError::Object("program"))?;
            let name = place(chosen.at, &program.section().to_string_lossy());
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

    /// Asks the kernel how often it left a program out.
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
    fn note(&self) -> String {
        match (self.at, self.row.forms.last()) {
            (At::Classic, Some(usual)) => format!(
                "instead of tp_btf/{}, runs of which this kernel leaves out; costs more",
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

/// How a place is called: the section of its program, but for events of perf.
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
    }
}

/// Whether the place belongs to a file system that the kernel does not have, or has not
/// loaded: nothing of it can be missing.
fn is_of_absent_file_system(place: &str) -> bool {
    let name = place.rsplit('/').next().unwrap_or_default();
    let file_system = match name.split('_').next() {
        // The journal of ext4.
        Some("jbd2") => "ext4",
        Some(name @ ("ext4" | "xfs" | "btrfs")) => name,
        _ => return false,
    };
    std::fs::read_to_string("/proc/filesystems").is_ok_and(|known| {
        !known
            .lines()
            .any(|line| line.split_whitespace().next_back() == Some(file_system))
    })
}

/// Times that the kernel left the program `fd` out; 0 where it does not say
/// (before 5.12; it left none out then).
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
