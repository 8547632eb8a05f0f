//! The recorded processes, as the kernel's records say: whose regions are believed, when they are
//! over, and which programs did not load the object.

use std::collections::{BTreeMap, HashMap, HashSet};

use fathom_model::abi::{RECORD_TASK, TASK_EXEC, TASK_EXIT, TASK_FORK, TASK_SEEN, TaskRecord};
use fathom_model::raw::{RawChunk, Ring};

use crate::framing::framed;

/// Programs without the object whose names are kept.
const MAX_PROGRAMS: usize = 64;
/// Bytes of a program's path that are shown.
const LONGEST_NAME: usize = 4096;

/// Something that ends the calls of a thread or of a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A thread has ended.
    Thread { pid: u32, tid: u32, at_ns: u64 },
    /// Other memory took the place of the process's.
    Memory { pid: u32, at_ns: u64 },
    /// The last thread has ended.
    Process { pid: u32, at_ns: u64 },
}

#[derive(Debug, Default)]
struct Process {
    threads: HashSet<u32>,
    /// The programs that it executed since the last time they were judged, and the one before.
    executed: Vec<Executed>,
}

#[derive(Debug)]
struct Executed {
    at_ns: u64,
    name: String,
    /// Whether it has loaded the object.
    loaded: bool,
}

#[derive(Debug, Default)]
pub(super) struct Tasks {
    processes: HashMap<u32, Process>,
    /// Programs without the object, and how often.
    without: BTreeMap<String, u64>,
}

impl Tasks {
    /// Takes in what the kernel's records say; returns what has come to its end.
    pub(super) fn follow(&mut self, chunks: &[RawChunk]) -> Vec<End> {
        let mut events = Vec::new();
        for chunk in chunks.iter().filter(|chunk| chunk.ring == Ring::Wide) {
            let mut rest = chunk.bytes.as_slice();
            while let Some((record, behind)) = framed(rest) {
                rest = behind;
                if record.first().map(|kind| u32::from(*kind)) == Some(RECORD_TASK)
                    && let Some(task) = TaskRecord::parse(record)
                {
                    events.push((task, executable(&task, record)));
                }
            }
        }
        events.sort_by_key(|(task, _)| task.ts_ns);
        let mut ends = Vec::new();
        for (task, executable) in events {
            self.event(&task, executable, &mut ends);
        }
        ends
    }

    fn event(&mut self, task: &TaskRecord, executable: String, ends: &mut Vec<End>) {
        let (pid, tid, at_ns) = (task.pid, task.tid, task.ts_ns);
        match u32::from(task.event) {
            TASK_SEEN | TASK_FORK => {
                self.processes.entry(pid).or_default().threads.insert(tid);
            }
            TASK_EXEC => {
                let process = self.processes.entry(pid).or_default();
                process.threads = HashSet::from([tid]);
                process.executed.push(Executed {
                    at_ns,
                    name: executable,
                    loaded: false,
                });
                ends.push(End::Memory { pid, at_ns });
            }
            TASK_EXIT => {
                ends.push(End::Thread { pid, tid, at_ns });
                let Some(process) = self.processes.get_mut(&pid) else {
                    return;
                };
                process.threads.remove(&tid);
                if process.threads.is_empty() {
                    ends.push(End::Process { pid, at_ns });
                }
            }
            _ => {}
        }
    }

    /// Whether a process is recorded.
    pub(super) fn has(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// A region that the process took at `at_ns` was found.
    pub(super) fn loaded(&mut self, pid: u32, at_ns: u64) {
        let process = self.processes.get_mut(&pid);
        let mut executed = process
            .into_iter()
            .flat_map(|process| process.executed.iter_mut().rev());
        if let Some(program) = executed.find(|program| program.at_ns <= at_ns) {
            program.loaded = true;
        }
    }

    /// Notes the programs that did not load the object and never will, as others took their place.
    pub(super) fn judge(&mut self) {
        for process in self.processes.values_mut() {
            let last = process.executed.pop();
            for program in process.executed.drain(..) {
                note(&mut self.without, program);
            }
            process.executed.extend(last);
        }
    }

    /// The process is over, and what it did was taken.
    pub(super) fn forget(&mut self, pid: u32) {
        if let Some(process) = self.processes.remove(&pid) {
            for program in process.executed {
                note(&mut self.without, program);
            }
        }
    }

    /// The programs without the object, when the recording is over.
    pub(super) fn without_object(&mut self) -> BTreeMap<String, u64> {
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.forget(pid));
        std::mem::take(&mut self.without)
    }
}

fn note(without: &mut BTreeMap<String, u64>, program: Executed) {
    if !program.loaded && (without.len() < MAX_PROGRAMS || without.contains_key(&program.name)) {
        *without.entry(program.name).or_default() += 1;
    }
}

/// Path of the executable, whose components stand in the record from the leaf up; the name of the
/// thread where paths are not read.
fn executable(task: &TaskRecord, record: &[u8]) -> String {
    let from = TaskRecord::SIZE + usize::from(task.cmdline_len);
    let components = record
        .get(from..from + usize::from(task.exe_len))
        .unwrap_or_default();
    if components.is_empty() || components.len() > LONGEST_NAME {
        let name = task.comm.split(|byte| *byte == 0).next();
        return String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
    }
    let names = components
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty());
    names
        .rev()
        .map(|name| format!("/{}", String::from_utf8_lossy(name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::append_framed;

    fn task(event: u32, ts_ns: u64, (pid, tid): (u32, u32), exe: &[u8]) -> Vec<u8> {
        let record = TaskRecord {
            kind: RECORD_TASK as u8,
            event: event as u8,
            cmdline_len: 0,
            exe_len: exe.len() as u16,
            cgroup_len: 0,
            ts_ns,
            started_at_ns: 0,
            cgroup_id: 0,
            pid,
            tid,
            ppid: 1,
            uid: 0,
            exit_code: 0,
            mnt_ns: 0,
            comm: [0; 16],
        };
        let mut bytes = Vec::new();
        append_framed(&mut bytes, &[&record.to_bytes()[..], exe].concat());
        bytes
    }

    #[test]
    fn programs_that_did_not_load_the_object() {
        let mut tasks = Tasks::default();
        // In the rings of two CPUs.
        let chunk = |records: &[Vec<u8>]| RawChunk {
            cpu: 0,
            ring: Ring::Wide,
            bytes: records.concat(),
        };
        let ends = tasks.follow(&[
            chunk(&[
                task(TASK_FORK, 20, (7, 8), b""),
                task(TASK_EXEC, 30, (7, 7), b"static/bin/"),
                task(TASK_EXIT, 40, (7, 7), b""),
            ]),
            chunk(&[task(TASK_EXEC, 10, (7, 7), b"sh/bin/")]),
        ]);
        assert_eq!(
            ends,
            [
                End::Memory { pid: 7, at_ns: 10 },
                End::Memory { pid: 7, at_ns: 30 },
                End::Thread {
                    pid: 7,
                    tid: 7,
                    at_ns: 40
                },
                End::Process { pid: 7, at_ns: 40 },
            ]
        );
        assert!(tasks.has(7) && !tasks.has(8));
        // Only the first one, before the second one took its place.
        tasks.loaded(7, 15);
        tasks.judge();
        tasks.forget(7);
        tasks.follow(&[chunk(&[task(TASK_EXEC, 50, (9, 9), b"cat/bin/")])]);
        // Of the program before.
        tasks.loaded(9, 45);
        tasks.loaded(9, 55);
        let without = tasks.without_object();
        let expected = [("/bin/static", 1)];
        assert_eq!(
            without,
            expected.map(|(name, n)| (name.to_owned(), n)).into()
        );
    }
}
