//! The kernel side at work: loads the eBPF programs, attaches them, says which
//! tasks are recorded and drains what they write. The only crate that needs
//! privilege and the only one with unsafe code.

mod adopt;
mod call_counters;
mod command;
mod containers;
mod contexts;
mod descriptors;
mod error;
mod features;
mod filter;
mod framing;
mod function_places;
mod hooks;
mod in_flight;
mod kernel_functions;
mod kernel_types;
mod layers;
mod library;
mod load;
mod mappings;
mod maps;
mod modules;
mod mounts;
mod options;
mod perf_counters;
mod pod_rules;
mod preload_error;
mod privilege;
mod probe;
mod refused;
mod rings;
mod selection;
mod signals;
mod stacks;
mod stats;
pub mod system;
mod terminal;
mod tls;
mod unfinished;
mod uprobes;
mod usdt;
mod user;
mod variant;
mod wanted_functions;

pub use call_counters::NO_PROCESS;
pub use command::{Command, CommandExit, Conditions};
pub use error::{ProbeError, SpawnError};
pub use filter::{FilterArgs, FilterError, Filters};
pub use hooks::{CONTEXT, FUNCTION, LAYER_VFS, LIBRARY, USDT};
pub use in_flight::{InFlight, Operation, Whereabouts};
pub use kernel_functions::{KernelFunction, KernelFunctionError, KernelFunctions};
pub use layers::usual_layers;
pub use library::preload::{Preload, PreloadFiles};
pub use options::ProbeOptions;
pub use perf_counters::{PerfCounters, PerfCountersError, perf_counters_here};
pub use preload_error::PreloadError;
pub use privilege::{Privilege, missing_privilege};
pub use probe::Probe;
pub use rings::Crossed;
pub use selection::{Selection, SelectionError};
pub use signals::{Arrived, Signals};
pub use stats::{KernelStats, Losses};
pub use user::{User, group_id};
pub use wanted_functions::{LibraryError, Wanted};

use fathom_model::meta::Moment;

/// How much is read of each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Numbers only: no paths, no memory of the program is read.
    Raw,
    /// Files behind descriptors with their paths; no strings from arguments.
    Fds,
    /// Everything.
    Full,
}

impl Detail {
    /// Name on the command line and in session.json.
    pub fn name(self) -> &'static str {
        match self {
            Detail::Raw => "raw",
            Detail::Fds => "fds",
            Detail::Full => "full",
        }
    }
}

/// Handling of the bytes that calls move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// They are not read.
    None,
    /// They are hashed in the kernel.
    Hash,
    /// They are sent, to be hashed in user space.
    Send,
    /// They are sent, to be kept.
    Plain,
}

/// CLOCK_MONOTONIC now, nanoseconds.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME now, nanoseconds since 1970.
pub fn realtime_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

/// Both clocks now.
pub fn moment() -> Moment {
    Moment::read(|| monotonic_ns() as i64, || realtime_ns() as i64)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives the call; these clocks always exist, so the call
    // cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
