//! The builds of the eBPF programs, and which of them this kernel can load.

use crate::error::ProbeError;
use crate::features::Features;

/// Aligned, because libbpf reads an object in place.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

macro_rules! object {
    ($file:literal) => {{
        static OBJECT: &Aligned<[u8]> =
            &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $file)));
        &OBJECT.0
    }};
}

/// One build of the programs (`bpf/include/compat.h`).
pub(crate) struct Variant {
    /// Version of Linux that first had all that it uses.
    pub(crate) since: &'static str,
    pub(crate) object: &'static [u8],
    /// It has loops, which filters of paths and cgroups need.
    pub(crate) loops: bool,
    /// The cost for the user if no newer build can be loaded; empty for the newest.
    pub(crate) cost: &'static str,
    /// Whether the programs can read content and contexts of the traced programs and attach to their libraries.
    pub(crate) reads_programs: bool,
}

/// The builds, newest first, that can be loaded with these features. The first
/// is the one to take; the next ones serve when its programs are refused.
/// `FATHOM_PROGRAMS` names one, by its version: tests use it to run the builds
/// for older kernels on a newer one.
pub(crate) fn loadable(features: &Features) -> Result<Vec<Variant>, ProbeError> {
    let mut variants = Vec::new();
    let loops = features.has_helper("BPF_FUNC_loop");
    let wanted = std::env::var("FATHOM_PROGRAMS").ok();
    let is_wanted = |since: &str, fits: bool| wanted.as_deref().map_or(fits, |w| w == since);
    let casts = loops && features.has_function("bpf_rdonly_cast");
    let stacks = casts && features.has_function("bpf_jit_supports_private_stack");
    if is_wanted("6.13", stacks) {
        variants.push(Variant {
            since: "6.13",
            object: object!("fathom-613.bpf.o"),
            loops: true,
            reads_programs: true,
            cost: "",
        });
    }
    if is_wanted("6.2", casts) {
        variants.push(Variant {
            since: "6.2",
            object: object!("fathom-602.bpf.o"),
            loops: true,
            reads_programs: true,
            cost: "",
        });
    }
    if is_wanted("5.17", loops) {
        variants.push(Variant {
            since: "5.17",
            object: object!("fathom-517.bpf.o"),
            loops: true,
            reads_programs: true,
            cost: "recorded calls cost more: programs read files through kernel helpers",
        });
    }
    // Only where programs run with preemption off: not on newer kernels.
    #[cfg(target_arch = "x86_64")]
    if is_wanted("5.8", !loops) {
        variants.push(Variant {
            since: "5.8",
            object: object!("fathom-508.bpf.o"),
            loops: false,
            reads_programs: false,
            cost: "recorded calls cost more: programs read kernel objects through kernel \
                   helpers and look the state of a task up in a table; operations of io_uring and \
                   AIO, page faults on mapped files, write-back, and calls of 32-bit programs \
                   are not recorded; --content, --spans, --library (but by preload), --usdt, --path, --cgroup, --container, --unit, --pod, and --namespace are refused",
        });
    }
    if variants.is_empty() {
        return Err(ProbeError::NoPrograms);
    }
    Ok(variants)
}

/// All builds.
#[cfg(test)]
pub(crate) const OBJECTS: &[&[u8]] = &[
    object!("fathom-613.bpf.o"),
    object!("fathom-602.bpf.o"),
    object!("fathom-517.bpf.o"),
    #[cfg(target_arch = "x86_64")]
    object!("fathom-508.bpf.o"),
];
