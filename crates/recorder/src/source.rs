//! Where records come from: what a recording needs of the probes.

use fathom_model::abi::{ShedKey, ShedValue, TailControl};
use fathom_model::meta::{Hook, Records};
use fathom_model::raw::RawChunk;
use fathom_probe::{InFlight, KernelStats, Losses, Probe, ProbeError};

/// The probes, or a test double, with the methods of [`Probe`].
pub(crate) trait RecordSource {
    fn drain(&mut self, out: &mut Vec<RawChunk>);
    fn recycle(&mut self, buffer: Vec<u8>);
    fn stop(&mut self) -> Result<(), ProbeError>;
    fn live_tasks(&self) -> u64;
    fn in_flight(&mut self) -> Result<Vec<InFlight>, ProbeError>;
    fn counters(&self) -> KernelStats;
    fn losses(&self) -> Result<Losses, ProbeError>;
    fn take_counted(&mut self) -> Result<Vec<(ShedKey, ShedValue)>, ProbeError>;
    fn set_tail(&self, tail: &TailControl) -> Result<(), ProbeError>;
    fn records(&self) -> Records;
    fn hooks(&self) -> &[Hook];
    fn ring_peak(&self) -> f64;
}

impl RecordSource for Probe {
    fn drain(&mut self, out: &mut Vec<RawChunk>) {
        Probe::drain(self, out);
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        Probe::recycle(self, buffer);
    }

    fn stop(&mut self) -> Result<(), ProbeError> {
        Probe::stop(self)
    }

    fn live_tasks(&self) -> u64 {
        Probe::live_tasks(self)
    }

    fn in_flight(&mut self) -> Result<Vec<InFlight>, ProbeError> {
        Probe::in_flight(self)
    }

    fn counters(&self) -> KernelStats {
        Probe::counters(self)
    }

    fn losses(&self) -> Result<Losses, ProbeError> {
        Probe::losses(self)
    }

    fn take_counted(&mut self) -> Result<Vec<(ShedKey, ShedValue)>, ProbeError> {
        Probe::take_counted(self)
    }

    fn set_tail(&self, tail: &TailControl) -> Result<(), ProbeError> {
        Probe::set_tail(self, tail)
    }

    fn records(&self) -> Records {
        let crossed = self.crossed();
        Records {
            calls: crossed.calls,
            files: crossed.files,
            tasks: crossed.tasks,
        }
    }

    fn hooks(&self) -> &[Hook] {
        Probe::hooks(self)
    }

    fn ring_peak(&self) -> f64 {
        Probe::ring_peak(self)
    }
}
