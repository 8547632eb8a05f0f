//! Hooks for page faults on mapped files and for their write-back
//! (`bpf/faults.bpf.h`, `bpf/writeback.bpf.h`). All are optional.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use fathom_model::abi::FaultConfig;
use fathom_model::meta::Hook;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Typedef;
use libbpf_rs::{Link, Object, OpenObject};

use crate::error::ProbeError;

/// Tracepoints, and what is missing without them.
const TRACEPOINTS: [(&str, &str); 5] = [
    (BEGINS[0], NO_BEGIN),
    (BEGINS[1], NO_BEGIN),
    (
        "mm_filemap_map_pages",
        "which pages a fault mapped along is missing",
    ),
    ("signal_generate", "faults that failed are not recorded"),
    (WRITEBACK, "write-back of mapped files is not recorded"),
];
const BEGINS: [&str; 2] = ["page_fault_user", "page_fault_kernel"];
const NO_BEGIN: &str = "page faults have no duration and no access";
const WRITEBACK: &str = "block_bio_queue";

/// Software events of perf: program, name, config, and what is missing without.
const EVENTS: [(&str, &str, u32); 2] = [
    (
        "page_fault_minor",
        "minor-faults",
        libbpf_sys::PERF_COUNT_SW_PAGE_FAULTS_MIN,
    ),
    (
        "page_fault_major",
        "major-faults",
        libbpf_sys::PERF_COUNT_SW_PAGE_FAULTS_MAJ,
    ),
];
const NO_END: &str =
    "page faults have no duration, and major and failed ones can't be told from others";
const NO_FAULTS: &str = "page faults on mapped files are not recorded";

/// Which of the hooks there are.
#[derive(Debug, Default)]
pub(crate) struct FaultHooks {
    /// Names of programs to be attached to tracepoints.
    tracepoints: Vec<(&'static str, &'static str)>,
    /// Whether the events of perf can be had.
    events: bool,
    /// What is not there.
    missing: Vec<Hook>,
}

impl FaultHooks {
    /// Finds out what the kernel offers, and has only that loaded. `refused`: the
    /// kernel would not load the programs.
    pub(crate) fn prepare(
        open: &mut OpenObject,
        wanted: bool,
        refused: Option<String>,
    ) -> Result<Self, ProbeError> {
        let mut hooks = Self::default();
        if let Some(error) = &refused {
            hooks.miss("page faults", NO_FAULTS, error);
        }
        // A build for older kernels has no such programs, and says so itself.
        let built = open.progs().any(|program| program.name() == EVENTS[0].0);
        let wanted = wanted && built && refused.is_none();
        if wanted {
            hooks.look();
        }
        let has = |name: &str| hooks.tracepoints.iter().any(|(n, _)| *n == name);
        let begins = BEGINS.iter().all(|name| has(name));
        let config = FaultConfig {
            begins: begins.into(),
            ends: hooks.events.into(),
            page_shift: page_bytes().trailing_zeros(),
            writeback: has(WRITEBACK).into(),
        };
        let events = hooks.events;
        for mut program in open.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            if TRACEPOINTS.iter().any(|(n, _)| *n == name) {
                program.set_autoload(has(&name));
            } else if EVENTS.iter().any(|(n, ..)| *n == name) {
                program.set_autoload(events);
            }
        }
        for mut map in open.maps_mut() {
            if map.name() != ".rodata.faults" {
                continue;
            }
            let bytes = config.to_bytes();
            map.initial_value_mut()
                .and_then(|value| value.get_mut(..bytes.len()))
                .ok_or(ProbeError::Object("constants for page faults"))?
                .copy_from_slice(&bytes);
        }
        Ok(hooks)
    }

    /// Whether any of the programs is loaded.
    pub(crate) fn are_loaded(&self) -> bool {
        self.events || !self.tracepoints.is_empty()
    }

    fn miss(&mut self, name: &str, without: &str, why: &str) {
        self.missing.push(Hook {
            name: name.to_string(),
            attached: false,
            note: format!("{without} ({why})"),
            skipped: 0,
        });
    }

    fn look(&mut self) {
        let btf = match Btf::from_vmlinux() {
            Ok(btf) => btf,
            Err(error) => return self.miss("page faults", NO_FAULTS, &error.to_string()),
        };
        for (name, without) in TRACEPOINTS {
            let type_name = format!("btf_trace_{name}");
            if btf.type_by_name::<Typedef<'_>>(&type_name).is_some() {
                self.tracepoints.push((name, without));
            } else {
                self.miss(
                    &format!("tp_btf/{name}"),
                    without,
                    "this kernel has no such tracepoint",
                );
            }
        }
        match open_event(EVENTS[0].2, 0) {
            Ok(_) => self.events = true,
            Err(error) => self.miss("perf/page-faults", NO_END, &error.to_string()),
        }
        let begins = BEGINS
            .iter()
            .all(|begin| self.tracepoints.iter().any(|(n, _)| n == begin));
        if !begins && !self.events {
            self.tracepoints.clear();
            self.miss(
                "page faults",
                NO_FAULTS,
                "neither beginning nor end is seen",
            );
        }
    }

    /// Attaches what was loaded.
    pub(crate) fn attach(
        &self,
        object: &mut Object,
        cpus: usize,
    ) -> Result<(Vec<Link>, Vec<Hook>), ProbeError> {
        let (mut links, mut hooks) = (Vec::new(), self.missing.clone());
        for (name, without) in &self.tracepoints {
            let hook = format!("tp_btf/{name}");
            match program(object, name)?.attach() {
                Ok(link) => {
                    links.push(link);
                    hooks.push(attached(hook));
                }
                Err(error) => hooks.push(Hook {
                    name: hook,
                    attached: false,
                    note: format!("{without} ({error})"),
                    skipped: 0,
                }),
            }
        }
        for (name, event, config) in EVENTS.iter().filter(|_| self.events) {
            let hook = format!("perf/{event}");
            let mut failed = None;
            for cpu in 0..cpus as i32 {
                match attach_event(&program(object, name)?, *config, cpu) {
                    Ok(link) => links.extend(link),
                    Err(error) => failed = Some(format!("{NO_FAULTS} on CPU {cpu} ({error})")),
                }
            }
            hooks.push(match failed {
                None => attached(hook),
                Some(note) => Hook {
                    name: hook,
                    attached: false,
                    note,
                    skipped: 0,
                },
            });
        }
        Ok((links, hooks))
    }
}

fn program<'a>(
    object: &'a mut Object,
    name: &str,
) -> Result<libbpf_rs::ProgramMut<'a>, ProbeError> {
    object
        .progs_mut()
        .find(|program| program.name() == name)
        .ok_or(ProbeError::Object("program for page faults"))
}

fn attached(name: String) -> Hook {
    Hook {
        name,
        attached: true,
        note: String::new(),
        skipped: 0,
    }
}

/// Runs `program` at every `config` on `cpu`; `None` when the CPU is not there.
fn attach_event(
    program: &libbpf_rs::ProgramMut<'_>,
    config: u32,
    cpu: i32,
) -> Result<Option<Link>, String> {
    let event = match open_event(config, cpu) {
        Ok(event) => event,
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    match program.attach_perf_event(event.as_raw_fd()) {
        Ok(link) => {
            // The link closes it.
            let _ = event.into_raw_fd();
            Ok(Some(link))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// A software event of all tasks on `cpu`, each occurrence of it.
fn open_event(config: u32, cpu: i32) -> io::Result<OwnedFd> {
    let mut attr = libbpf_sys::perf_event_attr {
        type_: libbpf_sys::PERF_TYPE_SOFTWARE,
        size: size_of::<libbpf_sys::perf_event_attr>() as u32,
        config: u64::from(config),
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_period = 1;
    // SAFETY: `attr` is a whole structure of the size that it names and outlives
    // the call; the other arguments are numbers.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attr,
            -1,
            cpu,
            -1,
            libbpf_sys::PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just given this descriptor to us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Size of a page here, bytes.
fn page_bytes() -> u64 {
    // SAFETY: takes a number only.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}
