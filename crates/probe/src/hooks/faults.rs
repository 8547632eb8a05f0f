//! The page fault data that the chosen hooks can provide (`bpf/faults.bpf.h`,
//! `bpf/writeback.bpf.h`).

use fathom_model::abi::FaultConfig;

use super::{Feature, Hooks};

const BEGINS: [&str; 2] = ["page_fault_user", "page_fault_kernel"];
/// Instead of both.
const BEGIN: &str = "page_fault_function";
const ENDS: [&str; 2] = ["page_fault_minor", "page_fault_major"];
const WRITEBACK: &str = "block_bio_queue";

impl Hooks {
    /// Without beginning and end no fault is seen, and the other hooks are of no
    /// use.
    pub(super) fn drop_useless_faults(&mut self) {
        if !self.serve(Feature::Faults) || self.sees_begin() || self.sees_end() {
            return;
        }
        self.chosen.retain(|c| c.row.feature != Feature::Faults);
        for (_, name, without) in Feature::OPTIONAL.iter().filter(|o| o.0 == Feature::Faults) {
            self.miss(name, without, "the kernel reports neither start nor end");
        }
    }

    fn sees_begin(&self) -> bool {
        self.has(BEGIN) || BEGINS.iter().all(|program| self.has(program))
    }

    fn sees_end(&self) -> bool {
        ENDS.iter().all(|program| self.has(program))
    }
}

/// Configuration of the page fault programs.
pub(crate) fn fault_config(hooks: &Hooks) -> FaultConfig {
    FaultConfig {
        begins: hooks.sees_begin().into(),
        ends: hooks.sees_end().into(),
        page_shift: page_bytes().trailing_zeros(),
        writeback: hooks.has(WRITEBACK).into(),
    }
}

/// Size of a page here, bytes.
pub(super) fn page_bytes() -> u64 {
    // SAFETY: takes a number only.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}
