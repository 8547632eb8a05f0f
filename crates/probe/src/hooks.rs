//! Where the programs hang: what each needs of the kernel and what is missing
//! without it.

use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use fathom_model::meta::Hook;
use libbpf_rs::{Link, Object, OpenObject};

use crate::error::ProbeError;
use crate::features::Features;

/// A place that is hooked while recording.
struct Spec {
    /// The program, on a BTF tracepoint; its section tells which.
    program: &'static str,
    /// The same on a classic tracepoint, for kernels that would leave out runs of
    /// the other (`HAVE_CLASSIC` in `bpf/include/compat.h`).
    classic: Option<&'static str>,
    /// What is missing without it.
    without: &'static str,
    /// Nothing can be recorded without it.
    required: bool,
}

/// In the order in which they are attached: tasks first, so that no call is
/// recorded of a task that is unknown.
const HOOKS: [Spec; 7] = [
    Spec {
        program: "task_rename",
        // Does not tell which thread is renamed.
        classic: None,
        without: "names that threads give themselves are missing",
        required: false,
    },
    Spec {
        program: "cgroup_attach_task",
        // Does not tell which task moves.
        classic: None,
        without: "--cgroup and --container keep to the cgroup in which a task began",
        required: false,
    },
    Spec {
        program: "sched_process_exit",
        classic: Some("sched_process_exit_classic"),
        without: "ends of threads and calls that they were in are missing",
        required: false,
    },
    Spec {
        program: "sched_process_exec",
        classic: Some("sched_process_exec_classic"),
        without: "commands are not recorded from their start; command lines are missing",
        required: false,
    },
    Spec {
        program: "sched_process_fork",
        classic: Some("sched_process_fork_classic"),
        without: "children and new threads are not recorded",
        required: false,
    },
    Spec {
        program: "sys_exit",
        classic: Some("sys_exit_classic"),
        without: "no calls can be recorded",
        required: true,
    },
    Spec {
        program: "sys_enter",
        classic: Some("sys_enter_classic"),
        without: "no calls can be recorded",
        required: true,
    },
];

/// The hooks of one recording.
#[derive(Default)]
pub(crate) struct Hooks {
    /// What was chosen, and what became of it.
    pub(crate) list: Vec<Hook>,
    /// Program and what is missing without it, in the order of attaching.
    chosen: Vec<(&'static str, &'static Spec)>,
    /// Attached programs and their hooks in `list`.
    attached: Vec<(&'static str, usize)>,
}

/// Whether a program can be attached where its section says.
fn exists(section: &str, features: &Features) -> bool {
    match section.split_once('/') {
        Some(("tp_btf", tracepoint)) => features.has_tracepoint(tracepoint),
        Some(("tracepoint", event)) => ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
            .iter()
            .any(|root| {
                Path::new(root)
                    .join("events")
                    .join(event)
                    .join("id")
                    .exists()
            }),
        _ => true,
    }
}

impl Hooks {
    /// Chooses a program for each hook, before loading; leaves the others out,
    /// and those whose place this kernel does not have: one of them would keep
    /// the whole object from being loaded. Programs that are not in the list
    /// (iterators) stay.
    pub(crate) fn choose(open: &mut OpenObject, features: &Features) -> Result<Self, ProbeError> {
        let sections: Vec<_> = open
            .progs()
            .map(|program| {
                let text = |name: &std::ffi::OsStr| name.to_string_lossy().into_owned();
                (text(program.name()), text(program.section()))
            })
            .collect();
        let section = |name: &str| {
            let found = sections.iter().find(|(program, _)| program == name);
            found.map(|(_, section)| section.as_str())
        };
        let mut hooks = Hooks::default();
        for spec in &HOOKS {
            let preferred = spec.classic.filter(|_| features.preempts_tracepoints());
            let candidates = [preferred, Some(spec.program)].into_iter().flatten();
            let mut fitting = candidates
                .filter(|name| section(name).is_some_and(|section| exists(section, features)));
            match fitting.next() {
                Some(name) => hooks.chosen.push((name, spec)),
                None => {
                    let name = section(spec.program).unwrap_or(spec.program).to_string();
                    if spec.required {
                        return Err(ProbeError::NoHook(name));
                    }
                    hooks.list.push(Hook {
                        name,
                        attached: false,
                        note: format!("{} (this kernel has no such place)", spec.without),
                        skipped: 0,
                    });
                }
            }
        }
        for mut program in open.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let listed = HOOKS
                .iter()
                .any(|spec| spec.program == name || spec.classic == Some(name.as_str()));
            if listed && !hooks.chosen.iter().any(|(chosen, _)| *chosen == name) {
                program.set_autoload(false);
            }
        }
        Ok(hooks)
    }

    /// Attaches the programs that were chosen and loaded. What the kernel refuses
    /// is noted; only without the required ones is it an error.
    pub(crate) fn attach(&mut self, object: &mut Object) -> Result<Vec<Link>, ProbeError> {
        let mut links = Vec::new();
        for (name, spec) in &self.chosen {
            let program = object
                .progs_mut()
                .find(|program| program.name() == *name)
                .ok_or(ProbeError::Object("program"))?;
            let place = program.section().to_string_lossy().into_owned();
            match program.attach() {
                Ok(link) => {
                    links.push(link);
                    self.attached.push((name, self.list.len()));
                    let note = if spec.classic == Some(*name) {
                        format!(
                            "instead of tp_btf/{}, runs of which this kernel leaves out; costs \
                             more",
                            spec.program
                        )
                    } else {
                        String::new()
                    };
                    self.list.push(Hook {
                        name: place,
                        attached: true,
                        note,
                        skipped: 0,
                    });
                }
                Err(source) if spec.required => {
                    return Err(ProbeError::Refused {
                        what: place,
                        source,
                    });
                }
                Err(source) => self.list.push(Hook {
                    name: place,
                    attached: false,
                    note: format!("{} ({source})", spec.without),
                    skipped: 0,
                }),
            }
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
