//! Where the programs hang: what each needs of the kernel and what is missing
//! without it.

use fathom_model::meta::Hook;
use libbpf_rs::{Link, Object, OpenObject};

use crate::error::ProbeError;
use crate::features::Features;

/// A program that is attached while recording.
struct Spec {
    /// Name of the program; its section tells where it is attached.
    program: &'static str,
    /// What is missing without it.
    without: &'static str,
    /// Nothing can be recorded without it.
    required: bool,
}

const fn required(program: &'static str) -> Spec {
    Spec {
        program,
        without: "no calls can be recorded",
        required: true,
    }
}

const fn optional(program: &'static str, without: &'static str) -> Spec {
    Spec {
        program,
        without,
        required: false,
    }
}

/// In the order in which they are attached: tasks first, so that no call is
/// recorded of a task that is unknown.
const HOOKS: [Spec; 6] = [
    optional(
        "task_rename",
        "names that threads give themselves are missing",
    ),
    optional(
        "sched_process_exit",
        "ends of threads and calls that they were in are missing",
    ),
    optional(
        "sched_process_exec",
        "commands are not recorded from their start; command lines are missing",
    ),
    optional(
        "sched_process_fork",
        "children and new threads are not recorded",
    ),
    required("sys_exit"),
    required("sys_enter"),
];

/// Leaves out, before loading, the programs whose place this kernel does not
/// have: one of them would keep the whole object from being loaded. Programs
/// that are not in the list (iterators) stay. Returns what was left out.
pub(crate) fn select(open: &mut OpenObject, features: &Features) -> Result<Vec<Hook>, ProbeError> {
    let mut missing = Vec::new();
    for mut program in open.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let name = program.name().to_string_lossy().into_owned();
        let Some(spec) = HOOKS.iter().find(|spec| spec.program == name) else {
            continue;
        };
        let there = match section.split_once('/') {
            Some(("tp_btf", tracepoint)) => features.has_tracepoint(tracepoint),
            _ => true,
        };
        if there {
            continue;
        }
        if spec.required {
            return Err(ProbeError::NoHook(section));
        }
        program.set_autoload(false);
        missing.push(Hook {
            name: section,
            attached: false,
            note: format!("{} (this kernel has no such place)", spec.without),
        });
    }
    Ok(missing)
}

/// Attaches the programs that were loaded. What the kernel refuses is noted; only
/// without the required ones is it an error. `hooks` has what [`select`] left out.
pub(crate) fn attach(object: &mut Object, hooks: &mut Vec<Hook>) -> Result<Vec<Link>, ProbeError> {
    let mut links = Vec::new();
    for spec in &HOOKS {
        let program = object
            .progs_mut()
            .find(|program| program.name() == spec.program)
            .ok_or(ProbeError::Object("program"))?;
        let name = program.section().to_string_lossy().into_owned();
        if hooks.iter().any(|hook| hook.name == name && !hook.attached) {
            continue;
        }
        match program.attach() {
            Ok(link) => {
                links.push(link);
                hooks.push(Hook {
                    name,
                    attached: true,
                    note: String::new(),
                });
            }
            Err(source) if spec.required => {
                return Err(ProbeError::Refused { what: name, source });
            }
            Err(source) => hooks.push(Hook {
                name,
                attached: false,
                note: format!("{} ({source})", spec.without),
            }),
        }
    }
    Ok(links)
}
