//! The hooks for operations of io_uring and AIO. Kernels differ in these
//! tracepoints, so which programs are loaded follows from the kernel's BTF.

use fathom_model::abi::{
    CallDesc, MAX_OPERATIONS, WATCH_AIO_DESTROY, WATCH_AIO_EXIT, WATCH_AIO_REAP, WATCH_AIO_SUBMIT,
};
use fathom_model::meta::Hook;
use fathom_model::syscalls::{Api, SYSCALLS, Syscall};
use libbpf_rs::btf::types::{FuncProto, Typedef};
use libbpf_rs::btf::{Btf, BtfType, ReferencesType};
use libbpf_rs::{Link, Object, OpenObject};

use crate::selection::Selection;

/// A program for one form of a tracepoint.
struct Variant {
    program: &'static str,
    tracepoint: &'static str,
    /// Arguments of the tracepoint.
    arguments: usize,
    /// Name of the structure that its first argument points to.
    first: Option<&'static str>,
}

/// What is seen by a tracepoint that exists in several forms, of which the
/// first that fits is taken.
struct Need {
    api: Api,
    variants: &'static [Variant],
    without: &'static str,
}

const NEEDS: [Need; 6] = [
    Need {
        api: Api::IoUring,
        variants: &[
            Variant {
                program: "uring_complete",
                tracepoint: "io_uring_complete",
                arguments: 3,
                first: Some("io_ring_ctx"),
            },
            Variant {
                program: "uring_complete_values",
                tracepoint: "io_uring_complete",
                arguments: 7,
                first: None,
            },
        ],
        without: "operations of io_uring have no result and no end",
    },
    Need {
        api: Api::IoUring,
        variants: &[
            Variant {
                program: "uring_submit_req",
                tracepoint: "io_uring_submit_req",
                arguments: 1,
                first: Some("io_kiocb"),
            },
            Variant {
                program: "uring_submit_sqe",
                tracepoint: "io_uring_submit_sqe",
                arguments: 2,
                first: Some("io_kiocb"),
            },
        ],
        without: "operations of io_uring are not recorded",
    },
    Need {
        api: Api::IoUring,
        variants: &[Variant {
            program: "uring_req_failed",
            tracepoint: "io_uring_req_failed",
            arguments: 3,
            first: Some("io_uring_sqe"),
        }],
        without: "operations of io_uring that the kernel refuses at once are not recorded",
    },
    Need {
        api: Api::IoUring,
        variants: &[Variant {
            program: "uring_queue_async_work",
            tracepoint: "io_uring_queue_async_work",
            arguments: 2,
            first: Some("io_kiocb"),
        }],
        without: "which operations of io_uring went through a worker thread is not known",
    },
    Need {
        api: Api::IoUring,
        variants: &[Variant {
            program: "uring_cqe_overflow",
            tracepoint: "io_uring_cqe_overflow",
            arguments: 5,
            first: None,
        }],
        without: "operations that complete while the ring of completions is full have no result",
    },
    Need {
        api: Api::Aio,
        variants: &[Variant {
            program: "aio_dio_complete",
            tracepoint: "iomap_dio_complete",
            arguments: 3,
            first: Some("kiocb"),
        }],
        without: "the end of direct I/O of AIO is when its completion was found, not exact",
    },
];

/// What was chosen for a need.
pub(crate) struct Choice {
    /// The program that is loaded; `None` when no form fits.
    program: Option<&'static str>,
    tracepoint: &'static str,
    without: &'static str,
}

/// Chooses the programs to load; those that no selected operation needs, and
/// those that do not fit the kernel, are left out.
pub(crate) fn choose(open: &mut OpenObject, selection: &Selection) -> Vec<Choice> {
    let btf = Btf::from_vmlinux().ok();
    let mut load = Vec::new();
    let mut choices = Vec::new();
    for need in &NEEDS {
        // Renames through io_uring are watched even when they are not recorded.
        if need.api == Api::Aio && !selects_aio(selection) {
            continue;
        }
        let fitting = need
            .variants
            .iter()
            .filter(|v| open.progs().any(|program| program.name() == v.program))
            .find(|v| btf.as_ref().is_some_and(|btf| fits(btf, v)));
        load.extend(fitting.map(|v| v.program));
        choices.push(Choice {
            program: fitting.map(|v| v.program),
            tracepoint: fitting
                .or(need.variants.first())
                .map_or("", |v| v.tracepoint),
            without: need.without,
        });
    }
    let optional = |name: &str| {
        NEEDS
            .iter()
            .flat_map(|n| n.variants)
            .any(|v| v.program == name)
    };
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if optional(&name) && !load.contains(&name.as_str()) {
            program.set_autoload(false);
        }
    }
    choices
}

/// Whether the kernel has the tracepoint in this form.
fn fits(btf: &Btf<'_>, variant: &Variant) -> bool {
    let name = format!("btf_trace_{}", variant.tracepoint);
    let Some(proto) = btf
        .type_by_name::<Typedef<'_>>(&name)
        .and_then(|t| t.referenced_type().next_type())
        .and_then(|t| FuncProto::try_from(t).ok())
    else {
        return false;
    };
    // Its first parameter is the tracer's own.
    let mut parameters = proto.iter().skip(1);
    let first = parameters
        .next()
        .and_then(|p| btf.type_by_id::<BtfType<'_>>(p.ty))
        .and_then(|pointer| pointer.next_type())
        .map(|t| t.skip_mods_and_typedefs());
    let first = first.and_then(|t| t.name()?.to_str());
    let arguments = parameters.count() + 1;
    arguments == variant.arguments && (variant.first.is_none() || first == variant.first)
}

impl Choice {
    /// Attaches the program; tells what is missing when that is not possible.
    pub(crate) fn attach(&self, object: &mut Object) -> (Option<Link>, Hook) {
        let missing = |why: String| Hook {
            name: format!("tp_btf/{}", self.tracepoint),
            attached: false,
            note: format!("{} ({why})", self.without),
            skipped: 0,
        };
        let Some(program) = self.program else {
            return (
                None,
                missing("not in this kernel, in another form, or the kernel is too old".into()),
            );
        };
        let Some(program) = object.progs_mut().find(|p| p.name() == program) else {
            return (None, missing("the program is missing".into()));
        };
        match program.attach() {
            Ok(link) => {
                let hook = Hook {
                    name: format!("tp_btf/{}", self.tracepoint),
                    attached: true,
                    note: String::new(),
                    skipped: 0,
                };
                (Some(link), hook)
            }
            Err(error) => (None, missing(error.to_string())),
        }
    }
}

/// Whether operations of AIO are recorded.
pub(crate) fn selects_aio(selection: &Selection) -> bool {
    let is_aio = |index: &usize| SYSCALLS.get(*index).is_some_and(|s| s.api == Api::Aio);
    selection.calls.iter().any(is_aio)
}

/// One descriptor an operation, by its place.
pub(crate) fn descriptors(selection: &Selection) -> Vec<u8> {
    let mut bytes = vec![0; MAX_OPERATIONS as usize * CallDesc::SIZE];
    for (index, call) in SYSCALLS.iter().enumerate() {
        let Some(place) = call.operation() else {
            continue;
        };
        let mut desc = call.desc(index);
        desc.selected = selection.calls.contains(&index).into();
        let at = usize::from(place) * CallDesc::SIZE;
        if let Some(slot) = bytes.get_mut(at..at + CallDesc::SIZE) {
            slot.copy_from_slice(&desc.to_bytes());
        }
    }
    bytes
}

/// Marks the calls with which operations of AIO begin and end, in the
/// descriptors of all calls.
pub(crate) fn watch_aio(descs: &mut [u8]) {
    let number = |name: &str| SYSCALLS.get(Syscall::index_of(name)?)?.number();
    let exit_group = u16::try_from(libc::SYS_exit_group).ok();
    for (number, watch) in [
        (number("io_submit"), WATCH_AIO_SUBMIT),
        (number("io_getevents"), WATCH_AIO_REAP),
        (number("io_pgetevents"), WATCH_AIO_REAP),
        (number("io_destroy"), WATCH_AIO_DESTROY),
        (exit_group, WATCH_AIO_EXIT),
    ] {
        let at = number.map(|n| usize::from(n) * CallDesc::SIZE);
        let slot = at.and_then(|at| descs.get_mut(at..at + CallDesc::SIZE));
        let Some(slot) = slot else { continue };
        if let Some(mut desc) = CallDesc::parse(slot) {
            desc.selected |= watch as u8;
            slot.copy_from_slice(&desc.to_bytes());
        }
    }
}
