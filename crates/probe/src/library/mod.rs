//! Calls of functions of libraries (`bpf/library.bpf.h`): finds the libraries, and attaches the
//! programs to their functions. Static probes and the functions of TLS libraries are looked for in the
//! same files ([`crate::usdt`], [`crate::tls`]).
//!
//! A probe belongs to a file, so it serves every process that has the file mapped. For a command
//! the libraries in the system's directories are prepared before it starts: no call is missed.
//! Other files are found among the mappings of the recorded processes, soon after they were mapped.

mod budget;
mod counts;
mod places;
pub(crate) mod preload;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fathom_model::abi::{
    FunctionDesc, FunctionRecord, MAX_FUNCTIONS, NO_ARG, RECORD_FUNCTION, RECORD_TASK, RESULT_ARG,
    TASK_DESCRIBED, TASK_EXEC, TASK_SEEN, TaskRecord,
};
use fathom_model::library::{Function, Returns, Role};
use fathom_model::meta::Hook;
use fathom_model::raw::{RawChunk, Ring};
use libbpf_rs::{Link, MapCore, MapFlags, Object};

use crate::error::ProbeError;
use crate::framing::{append_framed, framed};
use crate::function_places;
use crate::hooks::LIBRARY;
use crate::mappings::code;
use crate::maps::map;
use crate::tls::{self, TlsLibraries};
use crate::uprobes::{Place, attach};
use crate::usdt::StaticProbes;
use crate::wanted_functions::{LibraryError, Wanted, WantedFunction};

/// Where a FILE has its descriptor: `_fileno` of `struct _IO_FILE` in glibc.
const FILENO_AT: u8 = 112;
/// The same in musl: `fd` of `struct _IO_FILE`.
const FILENO_AT_IN_MUSL: u8 = 120;
/// Files that are examined at most.
const MAX_FILES: usize = 4096;
/// Processes whose mappings are looked at again and again.
const MAX_PROCESSES: usize = 1024;
/// Processes that are looked at in one turn.
const A_TURN: usize = 16;
/// Until the second look at a process; each further pause is twice as long, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The libraries of a recording.
pub(crate) struct Libraries {
    wanted: Wanted,
    usdt: StaticProbes,
    tls: Option<TlsLibraries>,
    /// Whether the libraries of the system are prepared.
    of_system: bool,
    /// Whether the kernel attaches to many functions at once.
    multi: bool,
    links: Vec<Link>,
    /// Device and inode of the files that were examined.
    examined: HashSet<(u64, u64)>,
    /// The same of mappings, as `/proc/PID/maps` has them.
    mappings: HashSet<String>,
    /// Processes, and when to look at them again.
    processes: HashMap<u32, (Instant, Duration)>,
    functions: u16,
    counts: counts::Counts,
    /// Whether it was said that they cannot be read.
    counts_refused: bool,
    /// Elements of the list whose functions were found.
    found: HashSet<String>,
    /// When what can be found before anything is recorded was found.
    prepared: Option<Instant>,
    /// Records of functions that were found.
    records: Vec<u8>,
    /// The libraries, and whether the programs are attached to them.
    hooks: Vec<Hook>,
}

impl Libraries {
    /// `of_system`: the libraries in the system's directories may be used from the beginning.
    /// `budget`: calls of a function in a second that are recorded at most.
    pub(crate) fn new(
        wanted: Wanted,
        (usdt, tls): (StaticProbes, Option<TlsLibraries>),
        (of_system, multi): (bool, bool),
        budget: Option<u64>,
    ) -> Self {
        Self {
            wanted,
            usdt,
            tls,
            of_system,
            multi,
            links: Vec::new(),
            examined: HashSet::new(),
            mappings: HashSet::new(),
            processes: HashMap::new(),
            functions: 0,
            counts: counts::Counts::new(budget),
            counts_refused: false,
            found: HashSet::new(),
            prepared: None,
            records: Vec::new(),
            hooks: Vec::new(),
        }
    }

    /// Attaches to the libraries in the system's directories, to files that were named, and to
    /// the static probes in `programs`.
    ///
    /// # Errors
    /// When a named file cannot be read or has no such function, and when a map cannot be written.
    pub(crate) fn prepare(
        &mut self,
        programs: &[PathBuf],
        object: &mut Object,
    ) -> Result<(), ProbeError> {
        let named: HashSet<PathBuf> = self
            .wanted
            .0
            .iter()
            .filter_map(|w| w.file.clone())
            .collect();
        for path in named {
            let unreadable = |cause: std::io::Error| LibraryError::Unreadable {
                path: path.clone(),
                cause: cause.to_string(),
            };
            let file = File::open(&path).map_err(unreadable)?;
            let missing = self.examine(&file, &path, object)?;
            if let Some(function) = missing.into_iter().next() {
                return Err(LibraryError::Missing { path, function }.into());
            }
        }
        let of_system = match self.of_system || self.tls.is_some() {
            true => places::libraries(),
            false => Vec::new(),
        };
        for path in of_system {
            let is_wanted = self.of_system && self.wanted.of_library(&path).next().is_some();
            // All of their programs have these libraries in common.
            let is_tls = self.tls.is_some() && tls::is_library(&path);
            if (is_wanted || is_tls)
                && let Ok(file) = File::open(&path)
            {
                self.examine(&file, &path, object)?;
            }
        }
        for path in programs {
            // A file that cannot be read here is found when a process has mapped it.
            let is_file = fs::metadata(path).is_ok_and(|meta| meta.is_file());
            if let (true, Ok(file)) = (is_file, File::open(path)) {
                self.examine(&file, path, object)?;
            }
        }
        self.prepared = Some(Instant::now());
        Ok(())
    }

    /// Processes that are recorded from now on.
    pub(crate) fn follow(&mut self, pid: u32) {
        if self.processes.len() < MAX_PROCESSES {
            self.processes.insert(pid, (Instant::now(), FIRST_PAUSE));
        }
    }

    /// The processes in records that were drained.
    pub(crate) fn follow_all(&mut self, chunks: &[RawChunk]) {
        for chunk in chunks.iter().filter(|c| c.ring == Ring::Wide) {
            let mut rest = chunk.bytes.as_slice();
            while let Some((record, behind)) = framed(rest) {
                rest = behind;
                if record.first().map(|kind| u32::from(*kind)) != Some(RECORD_TASK) {
                    continue;
                }
                if let Some(task) = TaskRecord::parse(record)
                    && [TASK_SEEN, TASK_EXEC, TASK_DESCRIBED].contains(&u32::from(task.event))
                {
                    self.follow(task.pid);
                }
            }
        }
    }

    /// Looks at the mappings of processes, as far as it is time to.
    pub(crate) fn look(&mut self, object: &mut Object) {
        let now = Instant::now();
        let due = self.processes.iter().filter(|(_, (at, _))| *at <= now);
        let due: Vec<u32> = due.map(|(pid, _)| *pid).take(A_TURN).collect();
        for pid in due {
            let Ok(maps) = fs::read(format!("/proc/{pid}/maps")) else {
                self.processes.remove(&pid);
                continue;
            };
            self.look_at(pid, &String::from_utf8_lossy(&maps), object);
            if let Some((at, pause)) = self.processes.get_mut(&pid) {
                *at = Instant::now() + *pause;
                *pause = (2 * *pause).min(LONGEST_PAUSE);
            }
        }
    }

    fn look_at(&mut self, pid: u32, maps: &str, object: &mut Object) {
        for line in maps.lines() {
            let Some((range, _, path)) = code(line).filter(|(_, _, path)| path.starts_with('/'))
            else {
                continue;
            };
            // Device and inode.
            let identity: String = line.split(' ').skip(3).take(2).collect();
            if self.mappings.contains(&identity) || self.mappings.len() >= MAX_FILES {
                continue;
            }
            self.mappings.insert(identity);
            let link = format!("/proc/{pid}/map_files/{range}");
            // Opening something else than a file of this kind may wait, or have an effect.
            let is_file = fs::metadata(&link).is_ok_and(|meta| meta.is_file());
            if let (true, Ok(file)) = (is_file, File::open(&link))
                && let Err(error) = self.examine(&file, Path::new(path), object)
            {
                self.hooks
                    .push(refused(format!("{LIBRARY}{path}"), &error.to_string()));
            }
        }
    }

    /// Attaches to the functions in a file, if it has any; gives the names of functions that were
    /// wanted of this very file, and that it does not have.
    fn examine(
        &mut self,
        file: &File,
        path: &Path,
        object: &mut Object,
    ) -> Result<Vec<String>, ProbeError> {
        let Ok(meta) = file.metadata() else {
            return Ok(Vec::new());
        };
        if self.examined.len() >= MAX_FILES || !self.examined.insert((meta.dev(), meta.ino())) {
            return Ok(Vec::new());
        }
        self.usdt.examine(file, path, object)?;
        if let Some(tls) = &mut self.tls {
            tls.examine(file, path, object)?;
        }
        if self.wanted.is_empty() {
            return Ok(Vec::new());
        }
        let of_library: Vec<&WantedFunction> = self.wanted.of_library(path).collect();
        // A program may contain the library.
        let wanted: Vec<&WantedFunction> = match of_library.is_empty() {
            true => self.wanted.0.iter().filter(|w| w.file.is_none()).collect(),
            false => of_library,
        };
        let names: Vec<&str> = wanted.iter().map(|w| w.function.name.as_str()).collect();
        let found = function_places::places(file, &names);
        let mut at: Vec<(u64, Function)> = Vec::new();
        let mut missing = Vec::new();
        for WantedFunction {
            asked, function, ..
        } in wanted
        {
            let Some(places) = found.get(&function.name) else {
                missing.push(function.name.clone());
                continue;
            };
            self.found.insert(asked.clone());
            for place in places {
                // Several names of one function are one.
                if at.iter().all(|(known, _)| known != place) {
                    at.push((*place, function.clone()));
                }
            }
        }
        if !at.is_empty() {
            self.attach(file, path, &at, object)?;
        }
        Ok(missing)
    }

    /// Attaches to functions of a file, each with its place in the file.
    fn attach(
        &mut self,
        file: &File,
        path: &Path,
        functions: &[(u64, Function)],
        object: &mut Object,
    ) -> Result<(), ProbeError> {
        let name = format!("{LIBRARY}{}", path.display());
        if usize::from(self.functions) + functions.len() > MAX_FUNCTIONS as usize {
            self.hooks
                .push(refused(name, "there are too many functions"));
            return Ok(());
        }
        let first = self.functions;
        let descs = map(object, "functions")?;
        let now_ns = crate::monotonic_ns();
        for (number, (_, function)) in (first..).zip(functions) {
            descs
                .update(
                    &u32::from(number).to_ne_bytes(),
                    &desc(function, path).to_bytes(),
                    MapFlags::ANY,
                )
                .map_err(|source| ProbeError::Refused {
                    what: "the functions of libraries".into(),
                    source,
                })?;
            self.records
                .extend_from_slice(&record(number, function, path, (now_ns, false)));
        }
        self.functions += functions.len() as u16;
        let open = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let places: Vec<Place> = (u64::from(first)..)
            .zip(functions)
            .map(|(cookie, (at, _))| Place {
                at: *at,
                cookie,
                semaphore_at: 0,
            })
            .collect();
        // The return first: a call that is entered meanwhile has no end otherwise.
        let suffix = if self.multi { "multi" } else { "single" };
        let mut attached = Ok(());
        for (program, is_return) in [("library_return", true), ("library_enter", false)] {
            let program_name = format!("{program}_{suffix}");
            let program = object
                .progs_mut()
                .find(|program| program.name() == program_name.as_str())
                .ok_or(ProbeError::Object("program"))?;
            let links = attach(&program, &open, &places, is_return, self.multi);
            attached = links.map(|links| self.links.extend(links));
            if attached.is_err() {
                break;
            }
        }
        self.hooks.push(match attached {
            Ok(()) => Hook {
                name,
                attached: true,
                note: self.note(functions.len()),
                skipped: 0,
            },
            Err(error) => refused(name, &error.to_string()),
        });
        Ok(())
    }

    /// How many functions of a library are recorded, and since when, if not from the beginning.
    fn note(&self, functions: usize) -> String {
        let plural = if functions == 1 { "" } else { "s" };
        let since = match self.prepared {
            Some(at) => format!(", from {:.2} s on", at.elapsed().as_secs_f64()),
            None => String::new(),
        };
        format!("{functions} function{plural}{since}")
    }

    /// Compares the calls of functions with the budget, and takes what was counted. `is_over`: no
    /// program runs any more.
    pub(crate) fn count(&mut self, object: &Object, is_over: bool) {
        let counts = &mut self.counts;
        if let Err(error) = counts.look(object, self.functions, is_over, &mut self.records) {
            // At every look, if the kernel refuses one: said once.
            if !std::mem::replace(&mut self.counts_refused, true) {
                let why = format!("their counts cannot be read: {error}");
                self.hooks.push(refused(format!("{LIBRARY}(all)"), &why));
            }
        }
    }

    /// Records of functions since the last time.
    pub(crate) fn take_records(&mut self) -> Option<RawChunk> {
        let mut bytes = std::mem::take(&mut self.records);
        bytes.extend(self.usdt.take_records());
        (!bytes.is_empty()).then_some(RawChunk {
            cpu: 0,
            ring: Ring::Wide,
            bytes,
        })
    }

    /// The libraries that were found since the last time.
    pub(crate) fn take_hooks(&mut self) -> Vec<Hook> {
        let mut hooks = std::mem::take(&mut self.hooks);
        hooks.extend(self.usdt.take_hooks());
        hooks.extend(self.tls.iter_mut().flat_map(TlsLibraries::take_hooks));
        hooks
    }

    /// Detaches everything, and notes the elements of the list that were not found.
    pub(crate) fn stop(&mut self) {
        self.links.clear();
        self.usdt.stop();
        if let Some(tls) = &mut self.tls {
            tls.stop();
        }
        let asked: BTreeSet<&String> = self.wanted.0.iter().map(|w| &w.asked).collect();
        for asked in asked
            .into_iter()
            .filter(|asked| !self.found.contains(*asked))
        {
            let why = "no recorded program mapped a file with such functions";
            self.hooks.push(refused(format!("{LIBRARY}{asked}"), why));
        }
    }
}

fn refused(name: String, why: &str) -> Hook {
    Hook {
        name,
        attached: false,
        note: format!("calls of this library are not recorded ({why})"),
        skipped: 0,
    }
}

/// The arguments that the programs read of calls of a function.
fn desc(function: &Function, path: &Path) -> FunctionDesc {
    let place = |role| match function.place(role) {
        Some(place) => place as u8,
        None => NO_ARG as u8,
    };
    let either = |role, returned: Returns| match function.returns == returned {
        true => RESULT_ARG as u8,
        false => place(role),
    };
    let musl = path.to_string_lossy().contains("musl");
    FunctionDesc {
        stream: either(Role::Stream, Returns::Stream),
        fd: either(Role::Fd, Returns::Fd),
        path: place(Role::Path),
        fileno_at: if musl { FILENO_AT_IN_MUSL } else { FILENO_AT },
        counted: 0,
    }
}

/// The record of a function. `by_descriptor`: the file of its calls is found by their descriptors.
fn record(
    number: u16,
    function: &Function,
    path: &Path,
    (now_ns, by_descriptor): (u64, bool),
) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let texts = [
        path.as_os_str().as_bytes(),
        function.class.as_bytes(),
        function.name.as_bytes(),
    ];
    let texts = texts.map(|text| text.get(..usize::from(u16::MAX)).unwrap_or(text));
    let [library_len, class_len, name_len] = texts.map(|text| text.len() as u16);
    let record = FunctionRecord {
        kind: RECORD_FUNCTION as u8,
        result: function.returns as u8,
        function: number,
        by_descriptor: u32::from(by_descriptor),
        ts_ns: now_ns,
        roles: function.roles.map(|role| role as u8),
        library_len,
        class_len,
        name_len,
        reserved2: 0,
    };
    let mut framed = Vec::new();
    append_framed(
        &mut framed,
        &[&record.to_bytes()[..], &texts.concat()].concat(),
    );
    framed
}

#[cfg(test)]
mod tests {
    use fathom_model::library::FUNCTIONS;

    use super::*;

    fn function(name: &str) -> &'static Function {
        FUNCTIONS.iter().find(|f| f.name == name).unwrap()
    }

    #[test]
    fn places_of_descriptors() {
        let libc = Path::new("/lib/libc.so.6");
        let fread = desc(function("fread"), libc);
        assert_eq!(
            (fread.stream, fread.fd, fread.path),
            (3, NO_ARG as u8, NO_ARG as u8)
        );
        assert_eq!(fread.fileno_at, FILENO_AT);
        let fopen = desc(function("fopen"), Path::new("/lib/ld-musl-x86_64.so.1"));
        assert_eq!((fopen.stream, fopen.path), (RESULT_ARG as u8, 0));
        assert_eq!(fopen.fileno_at, FILENO_AT_IN_MUSL);
        assert_eq!(desc(function("gzdopen"), libc).fd, 0);
    }

    #[test]
    fn records_say_what_functions_are() {
        let bytes = record(7, function("fgets"), Path::new("/x/libc.so.6"), (5, false));
        let (record, rest) = framed(&bytes).unwrap();
        assert!(rest.is_empty());
        let fixed = FunctionRecord::parse(record).unwrap();
        assert_eq!((fixed.function, fixed.ts_ns), (7, 5));
        assert_eq!(fixed.result, Returns::Pointer as u8);
        assert_eq!(&record[FunctionRecord::SIZE..], b"/x/libc.so.6stdiofgets");
    }
}
