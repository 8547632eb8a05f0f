//! `process-per-item`: a process starts a program for each item, and most of the time goes into starting.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use hashbrown::{HashMap, HashSet};

use crate::prelude::*;

const MIN_PROCESSES: usize = 20;
/// Share of its time, and of theirs, until their programs are loaded.
const MIN_PART: f64 = 0.2;
/// Names among them: a build or a configure script starts more different programs.
const MAX_NAMES: usize = 8;
/// Names that a title has.
const SHOWN: usize = 3;
/// The process that becomes the parent of those whose parents have ended.
const INIT: i32 = 1;
/// Time between two modules that come late, at most: an interpreter runs each as it loads it, but one that waits for
/// something is at work.
const LONGEST_NS: i64 = 20_000_000;
/// Time from the last library to the next call, at most: the loader relocates them all, and some take long to begin.
const LONGEST_LINKING_NS: i64 = 200_000_000;
/// Processes of a program under one starter whose calls are remembered: what others do as well is no work of
/// their own.
const EXAMPLES_OF_A_PROGRAM: u32 = 2;
/// Most calls that are remembered of them, and in all.
const MAX_OF_A_PROGRAM: usize = 1 << 15;
const MAX_REMEMBERED: usize = 1 << 18;
/// Subshells between a script and what it starts.
const MAX_SHELLS: usize = 16;

static INFO: RuleInfo = RuleInfo {
    id: "process-per-item",
    name: "One process per item",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Open, Read, Write, Mmap, Close, Stat, Access, ReadDir],
    about_calls: false,
    what: "A script or program starts a program for each line or file. Each time the kernel copies \
           and replaces the process, and the loader finds, opens, and maps its libraries, which \
           takes longer than the work.",
    when: "One process (or its subshells) starts 20 or more processes with at most 8 different \
           names that end within the recording. The time from the start of each until its \
           libraries, its interpreter's modules, and the system's settings (/etc, locales) are \
           loaded, of modules that it loads later, and of what it then looks up and reads like one of the first two of \
           its program did, until it reads or writes something of its own, adds up to 20 % or more of the time of the starting process and to 20 % or more \
           of the started processes' own time; one process for all items saves only this part. \
           Fewer processes are steps of a script rather than items, and more names are typical of a build. If they run at the same time, the sums are divided by their average number.",
    cost: "time from the start of each process to its last call on a library, a module, or a \
           setting of the system before it reads or writes another file, and the time between two libraries or modules that it \
           opens later without reading or writing anything else in between, 20 ms at most for each; and of programs with \
           libraries the time from then until the first read or write that none of the first two processes made",
    advice: "Start one process for all items: one awk or sed program instead of a loop, `xargs` or \
           `find -exec ... {} +` with many arguments, or the shell's own features (`${x%.*}`, \
           `read`, `[[ ]]`, `$((...))`).",
    not_when: "Not when the items arrive one at a time and the result of each is needed at once.",
    bad: "while read -r line; do\n    echo \"$line\" | cut -d, -f2\ndone < table",
    good: "cut -d, -f2 table",
    reference: "execve(2), ld.so(8)",
};

/// Calls of the first processes of a program.
#[derive(Debug, Default)]
struct Program {
    processes: u32,
    calls: HashSet<u64>,
}

/// A process and the others of its program.
#[derive(Clone, Copy, Debug, Default)]
enum Part {
    #[default]
    Unknown,
    /// One of the first.
    First(u64),
    Other(u64),
    /// There is nothing to compare.
    None,
}

/// A process as it loads its program.
#[derive(Debug, Default)]
struct Load {
    until_ns: i64,
    /// Whether it has loaded a library, so that it is a program of its own.
    linked: bool,
    /// When it had loaded the last library.
    linked_at_ns: i64,
    part: Part,
    /// Time since then in which it did what the first processes of its program had done.
    shared_ns: i64,
    shared_until_ns: Option<i64>,
    /// Whether it has begun to work.
    works: bool,
    /// Time in which it loads more from then on, in between.
    later_ns: i64,
    /// When it opened the last one so, unless it has worked since.
    last_at_ns: Option<i64>,
    example: Option<Example>,
}

#[derive(Debug, Default)]
struct Started<'a> {
    count: usize,
    names: BTreeMap<&'a str, usize>,
    loading_ns: i64,
    shared_ns: i64,
    lives_ns: i64,
    first_at_ns: i64,
    last_at_ns: i64,
    examples: Examples,
    pids: BTreeSet<i32>,
}

impl Load {
    /// A call that the first processes of the program made, too.
    fn shares(&mut self, call: &Call) {
        let since = self.shared_until_ns.unwrap_or(self.until_ns);
        let end = call.ended_at_ns();
        let longest = match self.linked_at_ns == since {
            true => LONGEST_LINKING_NS,
            false => LONGEST_NS,
        };
        if call.ts_ns.saturating_sub(since) > longest {
            self.work();
            return;
        }
        self.shared_ns = self.shared_ns.saturating_add(end.saturating_sub(since).max(0));
        self.shared_until_ns = Some(end.max(since));
    }

    fn work(&mut self) {
        self.works = true;
        self.last_at_ns = None;
    }

    /// A call after it has begun to work: interpreters load modules when they come to need them.
    fn at_work(&mut self, call: &Call) {
        match call.kind {
            Kind::Open if call.succeeded() && call.path.is_some_and(is_code) => {
                let since = self.last_at_ns.unwrap_or(call.ts_ns);
                self.later_ns += call.ended_at_ns().saturating_sub(since).clamp(0, LONGEST_NS);
                self.last_at_ns = Some(call.ended_at_ns());
            }
            // Also of a socket or a pipe.
            Kind::Read | Kind::Write
                if self.last_at_ns.is_some() && call.moved() > 0 && !call.path.is_some_and(is_loaded) =>
            {
                self.last_at_ns = None;
            }
            _ => {}
        }
    }
}

rule! {
    pub struct ProcessPerItem {
        processes: Bounded<i32, Load>,
        programs: Bounded<u64, Program> = Bounded::new(|program| u64::from(program.processes)),
        remembered: usize,
        /// Whether a path is of something that a process loads, by its number.
        loaded: HashMap<u64, bool>,
    }
}

/// Paths for which that is remembered.
const MAX_PATHS: usize = 4096;

/// Whether a path is one that the loader opens.
fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".so") || name.contains(".so.")
}

/// Whether a path is one that programs read as they start, whatever they are about to do.
fn is_setting(path: &str) -> bool {
    let places = ["/etc/", "/usr/lib/locale/", "/usr/share/locale/", "/usr/share/zoneinfo/"];
    places.into_iter().any(|place| path.starts_with(place)) || path.contains("/gconv/")
}

/// Whether a path is a program of the system or a module of an interpreter's library, which an
/// interpreter loads as others load libraries.
fn is_module(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let endings = ["py", "pyc", "pm", "rb", "js", "cjs", "mjs", "jar"];
    let places = ["/lib/python", "/site-packages/", "/node_modules/", "/lib/ruby/"];
    let programs = ["/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/bin/"];
    programs.into_iter().any(|place| path.starts_with(place))
        || endings.contains(&ending) && (path.starts_with("/usr/") || places.into_iter().any(|place| path.contains(place)))
}

/// Whether a path is of something that a process loads as it starts.
fn is_loaded(path: &str) -> bool {
    is_code(path) || is_setting(path)
}

fn is_code(path: &str) -> bool {
    is_library(path) || is_module(path)
}

/// The process that started another one, past subshells: copies of the shell that have its name.
fn starter(state: &State, pid: i32) -> Option<i32> {
    let mut by = state.process(pid)?.ppid?;
    for _ in 0..MAX_SHELLS {
        let Some(shell) = state.process(by) else { break };
        let above = shell.ppid.and_then(|ppid| Some((ppid, state.process(ppid)?)));
        match above.filter(|(_, above)| above.comm == shell.comm) {
            Some((ppid, _)) => by = ppid,
            None => break,
        }
    }
    Some(by)
}

/// A call as other processes of the program may make it.
fn key_of_call(call: &Call) -> u64 {
    let mut key = DefaultHasher::new();
    let place = call.path_key().or(call.file.map(|file| file.0.unsigned_abs()));
    (call.kind as u8, place, call.offset.filter(|_| call.kind == Kind::Read)).hash(&mut key);
    key.finish()
}

impl ProcessPerItem {
    /// Whether a call is on something that a process loads as it starts.
    fn is_loaded(&mut self, call: &Call) -> bool {
        let (Some(path), Some(key)) = (call.path, call.path_key()) else { return false };
        if self.loaded.len() >= MAX_PATHS {
            self.loaded.clear();
        }
        *self.loaded.entry(key).or_insert_with(|| is_loaded(path))
    }

    /// Notes a call of one of the first processes of a program; whether it is one that they made, of others.
    fn is_shared(&mut self, call: &Call, state: &State) -> bool {
        let Some(load) = self.processes.get_mut(&call.pid) else { return false };
        if matches!(load.part, Part::Unknown) {
            load.part = match starter(state, call.pid).filter(|by| *by != INIT) {
                Some(by) => {
                    let key = key_of(call.comm) ^ u64::from(by.unsigned_abs()).rotate_left(32);
                    let program = self.programs.entry(key);
                    program.processes += 1;
                    match program.processes <= EXAMPLES_OF_A_PROGRAM {
                        true => Part::First(key),
                        false => Part::Other(key),
                    }
                }
                None => Part::None,
            };
        }
        match load.part {
            Part::First(key) => {
                let program = self.programs.entry(key);
                if program.calls.len() >= MAX_OF_A_PROGRAM || self.remembered >= MAX_REMEMBERED {
                    load.part = Part::None;
                } else if program.calls.insert(key_of_call(call)) {
                    self.remembered += 1;
                }
                false
            }
            Part::Other(key) if !load.works => {
                self.programs.get(&key).is_some_and(|program| program.calls.contains(&key_of_call(call)))
            }
            _ => false,
        }
    }

    /// A call on something other than libraries and settings, or of a process that works.
    fn other(&mut self, call: &Call, context: &Context) {
        let shared = matches!(call.kind, Kind::Open | Kind::Read | Kind::ReadDir | Kind::Stat | Kind::Access)
            && self.is_shared(call, context.state);
        let Some(load) = self.processes.get_mut(&call.pid) else { return };
        let own = match call.kind {
            Kind::Read | Kind::Write => call.moved() > 0 && context.file(call).is_some_and(|file| file.is_regular()),
            Kind::ReadDir => !matches!(load.part, Part::First(_)),
            _ => false,
        };
        if load.works {
            load.at_work(call);
        } else if shared && load.linked {
            load.shares(call);
        } else if own {
            load.work();
        }
    }
}

impl Rule for ProcessPerItem {
    fn call(&mut self, call: &Call, context: &Context) {
        let load = self.processes.get_mut(&call.pid);
        let known = load.is_some();
        if let Some(load) = load.filter(|load| load.works) {
            if matches!(load.part, Part::First(_)) {
                self.other(call, context);
            } else {
                load.at_work(call);
            }
            return;
        }
        let library = self.is_loaded(call);
        if library && matches!(call.kind, Kind::Stat | Kind::Access | Kind::ReadDir) {
            return;
        }
        if library && call.kind != Kind::Write {
            let load = self.processes.entry(call.pid);
            let of_library = call.path.is_some_and(is_library);
            load.linked |= call.kind == Kind::Open && call.succeeded() && of_library;
            match load.shared_until_ns {
                Some(_) => load.shares(call),
                None => {
                    load.until_ns = call.ended_at_ns();
                    if of_library {
                        load.linked_at_ns = load.until_ns;
                    }
                }
            }
            // Of look-ups that fail there are many, and they say nothing.
            let longest = load.example.as_ref().is_none_or(|example| example.dur_ns < call.dur_ns);
            if call.succeeded() && longest {
                load.example = Some(Example::of(call));
            }
        } else if known {
            self.other(call, context);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let mut by_starter: BTreeMap<i32, Started> = BTreeMap::new();
        for (pid, load) in self.processes.iter() {
            let Some(process) = run.state.process(*pid) else { continue };
            let (Some(ended), Some(by)) = (process.ended_at_ns, starter(run.state, *pid)) else { continue };
            let (loading, life) = (load.until_ns - process.started_at_ns, ended - process.started_at_ns);
            let loading = loading.saturating_add(load.later_ns).min(life);
            let shared = load.shared_ns.min(life.saturating_sub(loading));
            if load.until_ns <= process.started_at_ns || load.until_ns > ended {
                continue;
            }
            let started = by_starter.entry(by).or_default();
            if started.count == 0 {
                started.first_at_ns = process.started_at_ns;
            }
            started.count += 1;
            *started.names.entry(&process.comm).or_default() += 1;
            started.loading_ns += loading;
            started.shared_ns += shared;
            started.lives_ns += life;
            started.first_at_ns = started.first_at_ns.min(process.started_at_ns);
            started.last_at_ns = started.last_at_ns.max(ended);
            started.pids.insert(*pid);
            if let Some(example) = &load.example {
                started.examples.add_with(example.dur_ns, || example.clone());
            }
        }
        for (pid, started) in by_starter {
            let span = (started.last_at_ns - started.first_at_ns).max(1);
            let at_once = (started.lives_ns as f64 / span as f64).max(1.0);
            let starting = started.loading_ns.saturating_add(started.shared_ns);
            let cost = (starting as f64 / at_once) as i64;
            let part = cost as f64 / run.lifetime_ns(pid).max(1) as f64;
            let of_theirs = starting as f64 / started.lives_ns.max(1) as f64;
            if started.count < MIN_PROCESSES || started.names.len() > MAX_NAMES {
                continue;
            }
            if part < MIN_PART || of_theirs < MIN_PART || !run.matters(cost) {
                continue;
            }
            let comm = run.comm(pid);
            // It got them when their parents ended.
            if pid == INIT {
                continue;
            }
            let count = i64::try_from(started.count).unwrap_or(i64::MAX);
            let mut names: Vec<(&str, usize)> = started.names.into_iter().collect();
            names.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
            let rest = names.len().saturating_sub(SHOWN);
            let mut shown: Vec<String> = names.iter().take(SHOWN).map(|(name, _)| (*name).to_owned()).collect();
            if rest > 0 {
                shown.push("others".to_owned());
            }
            let shares = started.shared_ns > started.loading_ns / 4;
            out.push(Found {
                cost_ns: Some(cost),
                // Of its own calls it is none: it waits for the processes.
                costs: Costs::of(&[Kind::Other]).of_all_files(),
                title: format!(
                    "{comm} starts {} processes ({}); {} of its time is spent loading their programs{}",
                    units::count(count),
                    list(&shown),
                    units::percent(part.min(1.0)),
                    if shares { " and on reads that each of them repeats" } else { "" },
                ),
                subject: Subject::process(pid, &comm),
                evidence: vec![
                    number("processes", count),
                    number("mean_loading_ns", started.loading_ns / count.max(1)),
                    number("mean_life_ns", started.lives_ns / count.max(1)),
                    evidence("at_once", at_once),
                ]
                .into_iter()
                .chain(shares.then(|| number("mean_shared_ns", started.shared_ns / count.max(1))))
                .collect(),
                examples: started.examples.list(),
                query: calls!(
                    "pid BETWEEN {} AND {} AND comm IN ({}){}",
                    started.pids.first().copied().unwrap_or(0),
                    started.pids.last().copied().unwrap_or(0),
                    names.iter().map(|(name, _)| sql::quote(name)).collect::<Vec<_>>().join(", "),
                    if shares { "" } else { " AND path LIKE '%.so%'" },
                ),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    /// A script that starts so many processes, each of which works so long.
    fn script(processes: i32, work_us: i64, between_us: i64) -> Scenario {
        script_of(100, processes, work_us, between_us)
    }

    /// The same, but with this process as their parent.
    fn script_of(parent: i32, processes: i32, work_us: i64, between_us: i64) -> Scenario {
        let mut s = Scenario::new();
        s.process(100);
        s.stat("/data/script");
        for i in 0..processes {
            s.process(1000 + i);
            let began = s.now();
            s.wait_us(300);
            s.stat_missing("/usr/lib/glibc-hwcaps/libc.so.6");
            let fd = s.open_existing("/usr/lib/libc.so.6", "O_RDONLY|O_CLOEXEC", 1 << 20);
            s.read(fd, 832);
            s.mmap(fd);
            s.close(fd);
            s.wait_us(work_us);
            s.child_ends(began, parent, "cut");
            s.wait_us(between_us);
        }
        s.process(100);
        s.stat("/data/script");
        s
    }

    #[test]
    fn fires_on_a_process_a_line() {
        let found = fires("process-per-item", script(200, 100, 50));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].evidence[0].value, 200.0);
        assert!(found[0].title.contains("starts 200 processes (cut)"), "{}", found[0].title);
        assert_eq!(found[0].subject.pid, Some(100));
        assert!(found[0].examples.iter().all(|example| example.ret >= Some(0)), "{:?}", found[0].examples);
    }

    /// The loader relocates many libraries without a call in between, for so long.
    #[test]
    fn fires_on_programs_that_take_long_to_link() {
        let linking = |ms: i64, setting: bool| {
            let mut s = Scenario::new();
            s.process(100);
            s.stat("/data/script");
            for i in 0..40 {
                s.process(1000 + i);
                let began = s.now();
                let fd = s.open_existing("/usr/lib/libnetcdf.so.19", "O_RDONLY|O_CLOEXEC", 1 << 20);
                s.mmap(fd);
                s.close(fd);
                if setting {
                    let fd = s.open_existing("/etc/ssl/openssl.cnf", "O_RDONLY", 4096);
                    s.read(fd, 4096);
                    s.close(fd);
                }
                s.wait_ms(ms);
                let fd = s.open_existing("/data/year.nc", "O_RDONLY", 1 << 20);
                s.read(fd, 4096);
                s.pread(fd, 4096, i64::from(i + 1) * 4096);
                s.close(fd);
                s.wait_ms(10);
                s.child_ends(began, 100, "cdo");
            }
            s.process(100);
            s.stat("/data/script");
            s
        };
        fires("process-per-item", linking(50, false));
        // The program computes.
        silent("process-per-item", linking(50, true));
        silent("process-per-item", linking(500, false));
    }

    /// A script that starts so many processes, each of which reads a table and then so much of its own.
    fn lookups(processes: i32, table: i64, pause_us: i64, linked: bool) -> Scenario {
        let mut s = Scenario::new();
        s.process(100);
        s.stat("/data/script");
        for i in 0..processes {
            s.process(1000 + i);
            let began = s.now();
            let loaded = if linked { "/usr/lib/libc.so.6" } else { "/etc/tool.conf" };
            let fd = s.open_existing(loaded, "O_RDONLY|O_CLOEXEC", 1 << 20);
            s.mmap(fd);
            s.close(fd);
            let fd = s.open_existing("/data/book.pdf", "O_RDONLY", 1 << 30);
            for block in 0..table {
                s.wait_us(pause_us);
                s.pread(fd, 4096, block * 4096);
            }
            for block in 0..10 {
                s.wait_us(20);
                s.pread(fd, 4096, (100_000 + i64::from(i) * 100 + block) * 4096);
            }
            s.wait_us(200);
            s.child_ends(began, 100, "pdftotext");
        }
        s.process(100);
        s.stat("/data/script");
        s
    }

    #[test]
    fn reads_that_each_process_repeats_count() {
        let found = fires("process-per-item", lookups(100, 40, 20, true));
        let shared = found[0].evidence.iter().find(|e| e.name == "mean_shared_ns").unwrap();
        assert!((700_000.0..1_300_000.0).contains(&shared.value), "{}", shared.value);
        assert!(found[0].title.ends_with(" and on reads that each of them repeats"), "{}", found[0].title);
        assert!(!found[0].query.contains(".so"), "{}", found[0].query);
        silent("process-per-item", lookups(100, 1, 20, true));
        // Copies of a server, and processes that wait in between.
        silent("process-per-item", lookups(100, 40, 20, false));
        silent("process-per-item", lookups(100, 40, 30_000, true));
    }

    #[test]
    fn modules_that_come_later_count_until_the_next_work() {
        let modules = |works: bool| {
            let mut s = Scenario::new();
            s.process(100);
            s.stat("/data/script");
            for i in 0..100 {
                s.process(1000 + i);
                let began = s.now();
                let fd = s.open_existing("/usr/lib/libc.so.6", "O_RDONLY|O_CLOEXEC", 1 << 20);
                s.mmap(fd);
                for module in ["os", "re", "json", "csv", "ssl"] {
                    let fd = s.open_existing(&format!("/usr/lib/python3/{module}.pyc"), "O_RDONLY", 4000);
                    s.read(fd, 4000);
                    s.wait_us(400);
                    if module == "os" || works {
                        let fd = s.open_existing(&format!("/home/u{i}/.config/settings"), "O_RDONLY", 100);
                        s.read(fd, 100);
                    }
                }
                s.wait_us(2000);
                s.child_ends(began, 100, "brz");
            }
            s.process(100);
            s.stat("/data/script");
            s
        };
        let found = fires("process-per-item", modules(false));
        assert!(found[0].evidence[1].value > 1_200_000.0, "{:?}", found[0].evidence);
        silent("process-per-item", modules(true));
    }

    #[test]
    fn modules_of_an_interpreter_are_loaded_too() {
        for path in ["/usr/lib/python3/dist-packages/mercurial/ui.pyc", "/opt/py/lib/python3.11/os.py", "/srv/node_modules/a/index.js", "/usr/bin/hg"] {
            assert!(super::is_module(path), "{path}");
        }
        for path in ["/home/u/work/main.py", "/usr/include/stdio.h", "/usr/share/doc/a.gz"] {
            assert!(!super::is_module(path), "{path}");
        }
    }

    /// A library that forks twice: who started them has ended.
    #[test]
    fn silent_on_processes_that_init_has_adopted() {
        silent("process-per-item", script_of(1, 200, 100, 50));
    }

    #[test]
    fn silent_on_few_on_those_that_work_and_on_rare_ones() {
        silent("process-per-item", script(15, 100, 50));
        silent("process-per-item", script(200, 3000, 50));
        silent("process-per-item", script(200, 100, 5000));
    }
}
