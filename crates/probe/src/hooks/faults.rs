//! What of page faults can be seen with the hooks that were chosen
//! (`bpf/faults.bpf.h`, `bpf/writeback.bpf.h`).

use fathom_model::abi::FaultConfig;

use super::{Feature, Hooks};

const BEGINS: [&str; 2] = ["page_fault_user", "page_fault_kernel"];
const ENDS: [&str; 2] = ["page_fault_minor", "page_fault_major"];
const WRITEBACK: &str = "block_bio_queue";

impl Hooks {
    /// Without beginning and end no fault is seen, and the other hooks are of no
    /// use.
    pub(super) fn drop_useless_faults(&mut self) {
        let sees = |programs: [&str; 2]| programs.iter().all(|program| self.has(program));
        if !self.serve(Feature::Faults) || sees(BEGINS) || sees(ENDS) {
            return;
        }
        self.chosen.retain(|c| c.row.feature != Feature::Faults);
        for (_, name, without) in Feature::OPTIONAL.iter().filter(|o| o.0 == Feature::Faults) {
            self.miss(name, without, "neither beginning nor end is seen");
        }
    }
}

/// What the programs for page faults are told.
pub(crate) fn fault_config(hooks: &Hooks) -> FaultConfig {
    let sees = |programs: [&str; 2]| programs.iter().all(|program| hooks.has(program));
    FaultConfig {
        begins: sees(BEGINS).into(),
        ends: sees(ENDS).into(),
        page_shift: page_bytes().trailing_zeros(),
        writeback: hooks.has(WRITEBACK).into(),
    }
}

/// Size of a page here, bytes.
fn page_bytes() -> u64 {
    // SAFETY: takes a number only.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}
