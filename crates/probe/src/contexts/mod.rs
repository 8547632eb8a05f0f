//! Span contexts that SDKs of OpenTelemetry publish in each thread (`--otel-context`,
//! `bpf/include/context.h`): finds the thread-local variable in recorded processes, and what they say
//! of themselves as a whole.
//!
//! The programs name a process at its first call, and again when it has more code: what it loads later
//! is found soon after it was loaded. Until then its contexts are not known. A child has its
//! variable where its parent has it, from its first call on.

mod located;
mod published;
mod variable;

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fathom_model::abi::{
    ContextPlace, ContextProcessRecord, RECORD_CONTEXT_PROCESS, RECORD_TASK, TASK_FORK, TaskRecord,
};
use fathom_model::meta::Hook;
use fathom_model::raw::{RawChunk, Ring};
use libbpf_rs::{MapCore, MapFlags, Object};

use crate::error::ProbeError;
use crate::framing::{append_framed, framed};
use crate::hooks::CONTEXT;
use crate::mappings::code;
use crate::maps::map;
use located::Mapped;
use published::Published;
use variable::Variable;

/// Files that are remembered.
const MAX_FILES: usize = 8192;
/// Processes that are to be looked at, and whose publications are looked at again and again.
const MAX_PROCESSES: usize = 4096;
/// Processes that are looked at in one turn.
const A_TURN: usize = 64;
/// Bytes of the list of a process's mappings.
const MAX_MAPS: u64 = 16 << 20;
/// Files in the list of hooks.
const MAX_HOOKS: usize = 64;
/// Until the second look; each further pause is twice as long, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// When to look again.
#[derive(Clone, Copy)]
struct Due {
    at: Instant,
    pause: Duration,
}

impl Due {
    fn now() -> Self {
        Self {
            at: Instant::now(),
            pause: FIRST_PAUSE,
        }
    }

    fn later(self) -> Self {
        Self {
            at: Instant::now() + self.pause,
            pause: (2 * self.pause).min(LONGEST_PAUSE),
        }
    }
}

/// A process whose variable was found.
#[derive(Clone, Copy)]
struct Known {
    due: Due,
    /// Address of its publication, and when that was made; 0: none was found.
    published: (u64, u64),
}

/// Device, inode, size, and times of the last changes of contents and of the inode: a file that is made
/// again can have the inode of the one before.
type Identity = [i64; 7];

fn identity(meta: &Metadata) -> Identity {
    [
        meta.dev() as i64,
        meta.ino() as i64,
        meta.size() as i64,
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec(),
    ]
}

/// The processes of a recording.
#[derive(Default)]
pub(crate) struct Contexts {
    /// To be looked at.
    due: HashMap<u32, Due>,
    /// Those without the variable, and when they may be looked at again: a program that makes code all
    /// the time is named at each call.
    paused: HashMap<u32, Due>,
    known: HashMap<u32, Known>,
    files: HashMap<Identity, Option<Arc<Variable>>>,
    /// Records of processes.
    records: Vec<u8>,
    hooks: Vec<Hook>,
    found: Vec<String>,
}

/// The result of a look at a process.
enum Found {
    /// It has ended.
    Gone,
    /// No file with the variable.
    Nothing,
    /// One, but the loader has not said yet where its variables are.
    NotYet,
    Place(ContextPlace, String),
}

impl Contexts {
    /// Looks at processes that run already, before anything of them is recorded.
    ///
    /// # Errors
    /// When there is no map for what is found.
    pub(crate) fn adopt(&mut self, pids: &[u32], object: &mut Object) -> Result<(), ProbeError> {
        let mut pids = pids.iter();
        pids.try_for_each(|pid| self.look_at(*pid, object))
    }

    /// Takes the forks in records that were drained: children publish something of their own.
    pub(crate) fn follow(&mut self, chunks: &[RawChunk]) {
        for chunk in chunks.iter().filter(|chunk| chunk.ring == Ring::Wide) {
            for task in tasks(&chunk.bytes) {
                let is_process = u32::from(task.event) == TASK_FORK && task.pid == task.tid;
                if is_process && self.known.contains_key(&task.ppid) {
                    self.know(task.pid);
                }
            }
        }
    }

    /// Looks at the processes that the programs have named, as far as it is time to.
    pub(crate) fn look(&mut self, object: &mut Object) {
        let Ok(queue) = map(object, "context_queue") else {
            return;
        };
        for _ in 0..MAX_PROCESSES {
            // An error when it is empty, too.
            let Ok(Some(pid)) = queue.lookup_and_delete(&[]) else {
                break;
            };
            if let Some(pid) = pid.first_chunk::<4>() {
                self.want(u32::from_ne_bytes(*pid));
            }
        }
        let now = Instant::now();
        let due = self.due.iter().filter(|(_, due)| due.at <= now);
        let due: Vec<u32> = due.map(|(pid, _)| *pid).take(A_TURN).collect();
        for pid in due {
            // The map is there if the other one is.
            let _ = self.look_at(pid, object);
        }
        let due = self.known.iter().filter(|(_, known)| known.due.at <= now);
        let due: Vec<u32> = due.map(|(pid, _)| *pid).take(A_TURN).collect();
        for pid in due {
            self.read_published(pid);
        }
    }

    fn want(&mut self, pid: u32) {
        let now = Instant::now();
        let pause = self.paused.get(&pid).copied();
        let due = pause.filter(|due| now < due.at + LONGEST_PAUSE);
        if self.due.len() < MAX_PROCESSES {
            self.due.entry(pid).or_insert(due.unwrap_or_else(Due::now));
        }
    }

    fn know(&mut self, pid: u32) {
        if self.known.len() < MAX_PROCESSES {
            let (due, published) = (Due::now(), (0, 0));
            self.known.insert(pid, Known { due, published });
        }
    }

    fn look_at(&mut self, pid: u32, object: &mut Object) -> Result<(), ProbeError> {
        let before = self.due.remove(&pid).unwrap_or_else(Due::now);
        let places = map(object, "context_places")?;
        let key = pid.to_ne_bytes();
        match self.find(pid) {
            Found::Gone => {
                self.known.remove(&pid);
                self.paused.remove(&pid);
                // There may be none.
                let _ = places.delete(&key);
            }
            Found::Nothing => {
                if self.paused.len() >= MAX_PROCESSES {
                    self.paused.clear();
                }
                self.paused.insert(pid, before.later());
            }
            Found::NotYet => {
                self.due.insert(pid, before.later());
            }
            Found::Place(place, mapping) => {
                self.know(pid);
                // Before its first context.
                self.read_published(pid);
                // No room: the process has no contexts then.
                let _ = places.update(&key, &place.to_bytes(), MapFlags::ANY);
                // If it has executed another program meanwhile, this place is not its own.
                if !maps_of(pid).is_some_and(|maps| maps.contains(&mapping)) {
                    let _ = places.delete(&key);
                    self.due.insert(pid, before.later());
                }
            }
        }
        Ok(())
    }

    fn find(&mut self, pid: u32) -> Found {
        let (Some(maps), Ok(memory)) = (maps_of(pid), File::open(format!("/proc/{pid}/mem")))
        else {
            return Found::Gone;
        };
        let program = fs::read_link(format!("/proc/{pid}/exe"));
        let program = program.map(|path| path.to_string_lossy().into_owned());
        let program = program.unwrap_or_default();
        let program = program.strip_suffix(" (deleted)").unwrap_or(&program);
        let mapped = Mapped {
            maps: &maps,
            memory: &memory,
        };
        let mut found = Found::Nothing;
        for line in maps.lines() {
            let Some((range, offset, path)) = code(line).filter(|(.., path)| path.starts_with('/'))
            else {
                continue;
            };
            let Some(variable) = self.variable(pid, range) else {
                continue;
            };
            let start = range.split('-').next().unwrap_or_default();
            let place = u64::from_str_radix(start, 16).ok().and_then(|start| {
                let moved = variable.moved(start, offset)?;
                mapped.place(&variable, moved, path == program)
            });
            match place {
                Some(place) => {
                    self.note(path, &place);
                    return Found::Place(place, line.to_owned());
                }
                None => found = Found::NotYet,
            }
        }
        found
    }

    /// The variable of the file that is mapped there. Files are known by what they are, not by what the list
    /// of mappings says: the process may have mapped another one there meanwhile.
    fn variable(&mut self, pid: u32, range: &str) -> Option<Arc<Variable>> {
        let link = format!("/proc/{pid}/map_files/{range}");
        // Opening something else than a file of this kind may wait, or have an effect.
        let meta = fs::metadata(&link).ok().filter(|meta| meta.is_file())?;
        if let Some(known) = self.files.get(&identity(&meta)) {
            return known.clone();
        }
        let file = File::open(Path::new(&link)).ok()?;
        let meta = file.metadata().ok().filter(|meta| meta.is_file())?;
        let found = variable::variable(&file).map(Arc::new);
        if self.files.len() >= MAX_FILES {
            self.files.clear();
        }
        self.files.insert(identity(&meta), found.clone());
        found
    }

    /// Reads what a process has published, if that has changed.
    fn read_published(&mut self, pid: u32) {
        let Some(known) = self.known.get_mut(&pid) else {
            return;
        };
        known.due = known.due.later();
        let Ok(memory) = File::open(format!("/proc/{pid}/mem")) else {
            self.known.remove(&pid);
            return;
        };
        let (address, known_ns) = known.published;
        let again = (address != 0).then(|| published::published(&memory, address, known_ns));
        let (address, found) = match again.flatten() {
            Some(found) => (address, found),
            // There was none, or it is elsewhere now.
            None => {
                let Some(maps) = maps_of(pid) else {
                    self.known.remove(&pid);
                    return;
                };
                let mut each = published::addresses(&maps);
                let found = each.find_map(|address| {
                    Some((address, published::published(&memory, address, 0)?))
                });
                let Some(found) = found else {
                    return;
                };
                found
            }
        };
        let (published_ns, said) = found;
        if known.published != (address, published_ns) {
            known.published = (address, published_ns);
            append_framed(&mut self.records, &record(pid, &said));
        }
    }

    /// Notes that a file has the variable, and where.
    fn note(&mut self, path: &str, place: &ContextPlace) {
        if self.found.len() >= MAX_HOOKS || self.found.iter().any(|found| found == path) {
            return;
        }
        self.found.push(path.to_owned());
        self.hooks.push(Hook {
            name: format!("{CONTEXT} {path}"),
            attached: true,
            note: match place.module {
                0 => "in static thread-local storage".to_owned(),
                _ => "in dynamic thread-local storage".to_owned(),
            },
            skipped: 0,
        });
    }

    /// Records of processes since the last time.
    pub(crate) fn take_records(&mut self) -> Option<RawChunk> {
        let bytes = std::mem::take(&mut self.records);
        (!bytes.is_empty()).then_some(RawChunk {
            cpu: 0,
            ring: Ring::Wide,
            bytes,
        })
    }

    /// The files that were found since the last time.
    pub(crate) fn take_hooks(&mut self) -> Vec<Hook> {
        std::mem::take(&mut self.hooks)
    }

    /// The recording is over.
    pub(crate) fn stop(&mut self) {
        if self.found.is_empty() {
            self.hooks.push(Hook {
                name: CONTEXT.to_owned(),
                attached: false,
                note:
                    "no recorded program publishes span contexts of its threads: its SDK does not, \
                       or they are turned off"
                        .to_owned(),
                skipped: 0,
            });
        }
    }
}

/// The records of tasks in the bytes of a ring.
fn tasks(mut rest: &[u8]) -> impl Iterator<Item = TaskRecord> {
    std::iter::from_fn(move || {
        loop {
            let (record, behind) = framed(rest)?;
            rest = behind;
            if record.first().map(|kind| u32::from(*kind)) == Some(RECORD_TASK) {
                return TaskRecord::parse(record);
            }
        }
    })
}

/// The mappings of a process.
fn maps_of(pid: u32) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{pid}/maps")).ok()?;
    file.take(MAX_MAPS).read_to_end(&mut bytes).ok()?;
    // A process that has ended has none.
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

fn record(pid: u32, said: &Published) -> Vec<u8> {
    let mut keys = String::new();
    for key in &said.keys {
        keys.push_str(key);
        keys.push('\0');
    }
    let record = ContextProcessRecord {
        kind: RECORD_CONTEXT_PROCESS as u8,
        reserved: 0,
        service_len: said.service.len() as u16,
        pid,
        ts_ns: crate::monotonic_ns(),
        keys_len: keys.len() as u32,
        reserved2: 0,
    };
    [
        &record.to_bytes()[..],
        said.service.as_bytes(),
        keys.as_bytes(),
    ]
    .concat()
}
