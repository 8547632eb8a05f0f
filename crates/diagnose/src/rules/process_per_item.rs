//! `process-per-item`: a process starts a program for each item, and most of the time goes into starting.

use std::collections::{BTreeMap, BTreeSet};

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
/// Subshells between a script and what it starts.
const MAX_SHELLS: usize = 16;

static INFO: RuleInfo = RuleInfo {
    id: "process-per-item",
    name: "One process per item",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Open, Read, Write, Mmap, Close],
    about_calls: false,
    what: "A script or program starts a program for each line or file. Each time the kernel copies \
           and replaces the process, and the loader finds, opens, and maps its libraries, which \
           takes longer than the work.",
    when: "One process (or its subshells) starts 20 or more processes with at most 8 different \
           names that end within the recording. The time from the start of each until its \
           libraries, its interpreter's modules, and the system's settings (/etc, locales) are \
           loaded, and of modules that it loads later, adds up to 20 % or more of the time of the starting process and to 20 % or more \
           of the started processes' own time; one process for all items saves only this part. \
           Fewer processes are steps of a script rather than items, and more names are typical of a build. If they run at the same time, the sums are divided by their average number.",
    cost: "time from the start of each process to its last call on a library, a module, or a \
           setting of the system before it reads or writes another file, and the time between two libraries or modules that it \
           opens later without reading or writing anything else in between, 20 ms at most for each",
    advice: "Start one process for all items: one awk or sed program instead of a loop, `xargs` or \
           `find -exec ... {} +` with many arguments, or the shell's own features (`${x%.*}`, \
           `read`, `[[ ]]`, `$((...))`).",
    not_when: "Not when the items arrive one at a time and the result of each is needed at once.",
    bad: "while read -r line; do\n    echo \"$line\" | cut -d, -f2\ndone < table",
    good: "cut -d, -f2 table",
    reference: "execve(2), ld.so(8)",
};

/// A process as it loads its program.
#[derive(Debug, Default)]
struct Load {
    until_ns: i64,
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
    lives_ns: i64,
    first_at_ns: i64,
    last_at_ns: i64,
    examples: Examples,
    pids: BTreeSet<i32>,
}

impl Load {
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
    }
}

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

impl Rule for ProcessPerItem {
    fn call(&mut self, call: &Call, context: &Context) {
        if let Some(load) = self.processes.get_mut(&call.pid).filter(|load| load.works) {
            load.at_work(call);
            return;
        }
        let library = call.path.is_some_and(is_loaded);
        if library && call.kind != Kind::Write {
            let load = self.processes.entry(call.pid);
            load.until_ns = call.ended_at_ns();
            // Of look-ups that fail there are many, and they say nothing.
            let longest = load.example.as_ref().is_none_or(|example| example.dur_ns < call.dur_ns);
            if call.succeeded() && longest {
                load.example = Some(Example::of(call));
            }
        } else if matches!(call.kind, Kind::Read | Kind::Write)
            && call.moved() > 0
            && let Some(load) = self.processes.get_mut(&call.pid)
            && context.file(call).is_some_and(|file| file.is_regular())
        {
            load.works = true;
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let mut by_starter: BTreeMap<i32, Started> = BTreeMap::new();
        for (pid, load) in self.processes.iter() {
            let Some(process) = run.state.process(*pid) else { continue };
            let (Some(ended), Some(by)) = (process.ended_at_ns, starter(run.state, *pid)) else { continue };
            let (loading, life) = (load.until_ns - process.started_at_ns, ended - process.started_at_ns);
            let loading = loading.saturating_add(load.later_ns).min(life);
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
            let cost = (started.loading_ns as f64 / at_once) as i64;
            let part = cost as f64 / run.lifetime_ns(pid).max(1) as f64;
            let of_theirs = started.loading_ns as f64 / started.lives_ns.max(1) as f64;
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
            out.push(Found {
                cost_ns: Some(cost),
                // Of its own calls it is none: it waits for the processes.
                costs: Costs::of(&[Kind::Other]).of_all_files(),
                title: format!(
                    "{comm} starts {} processes ({}); {} of its time is spent loading their programs",
                    units::count(count),
                    list(&shown),
                    units::percent(part.min(1.0)),
                ),
                subject: Subject::process(pid, &comm),
                evidence: vec![
                    number("processes", count),
                    number("mean_loading_ns", started.loading_ns / count.max(1)),
                    number("mean_life_ns", started.lives_ns / count.max(1)),
                    evidence("at_once", at_once),
                ],
                examples: started.examples.list(),
                query: calls!("pid BETWEEN {} AND {} AND comm IN ({}) AND path LIKE '%.so%'", started.pids.first().copied().unwrap_or(0), started.pids.last().copied().unwrap_or(0), names.iter().map(|(name, _)| sql::quote(name)).collect::<Vec<_>>().join(", ")),
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
                        let fd = s.open_existing("/home/u/.config/settings", "O_RDONLY", 100);
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
