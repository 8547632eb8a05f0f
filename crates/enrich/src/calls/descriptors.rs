//! The files behind descriptors of processes, as their system calls show: for library calls whose
//! records do not name their file.

use fathom_model::abi::{TASK_EXIT, TASK_FORK, TaskRecord};
use fathom_model::kind::Kind as Purpose;
use fathom_model::syscalls::Returns;
use hashbrown::HashMap;

use super::call::Call;
use super::plan::Plan;

/// Descriptors that are remembered. Beyond that all are forgotten: library calls have no file then
/// until a system call shows it.
const MAX_DESCRIPTORS: usize = 1 << 20;

/// Handles of files by descriptor, of each process.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    /// Whether the recording has library calls without files.
    wanted: bool,
    processes: HashMap<u32, HashMap<i32, u32>>,
    count: usize,
}

impl Descriptors {
    /// Library calls without files follow.
    pub(crate) fn want(&mut self) {
        self.wanted = true;
    }

    /// The file of the last call on the descriptor; 0 if none was seen.
    pub(crate) fn file(&self, pid: u32, fd: i32) -> u32 {
        let known = self.processes.get(&pid).and_then(|of| of.get(&fd));
        known.copied().unwrap_or(0)
    }

    /// A call has ended.
    #[inline]
    pub(crate) fn call(&mut self, plan: &Plan, call: &Call<'_>) {
        if self.wanted && call.operation.is_none() {
            self.note(plan, call);
        }
    }

    fn note(&mut self, plan: &Plan, call: &Call<'_>) {
        let r = call.record;
        if plan.purpose == Purpose::Close {
            let of_process = self.processes.get_mut(&r.pid);
            if of_process.is_some_and(|of| of.remove(&r.fd).is_some()) {
                self.count -= 1;
            }
            return;
        }
        let fd = match plan.returns {
            Returns::Fd => i32::try_from(r.ret).unwrap_or(-1),
            _ => r.fd,
        };
        if fd < 0 || r.file == 0 {
            return;
        }
        if self.count >= MAX_DESCRIPTORS {
            self.processes.clear();
            self.count = 0;
        }
        let of_process = self.processes.entry(r.pid).or_default();
        self.count += usize::from(of_process.insert(fd, r.file).is_none());
    }

    /// A new process has the descriptors of its parent; one that has ended has none.
    pub(crate) fn task(&mut self, record: &TaskRecord) {
        if !self.wanted || record.pid != record.tid {
            return;
        }
        match u32::from(record.event) {
            TASK_FORK => {
                if let Some(parents) = self.processes.get(&record.ppid).cloned() {
                    self.count += parents.len();
                    self.processes.insert(record.pid, parents);
                }
            }
            TASK_EXIT => {
                let gone = self.processes.remove(&record.pid);
                self.count -= gone.map_or(0, |of| of.len());
            }
            _ => {}
        }
    }
}
