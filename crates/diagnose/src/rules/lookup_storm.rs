//! `lookup-storm`: most of the paths that a process looks up are not there.

use crate::prelude::*;

/// Failures from which on they count.
const MIN_FAILURES: u64 = 100;
/// Share of look-ups that fail.
const MIN_PART: f64 = 0.5;
/// Paths from which on they are a search path. With fewer, looks at them without opening are the matter of redundant-stat.
const MIN_PATHS: u64 = 10;

static INFO: RuleInfo = RuleInfo {
    id: "lookup-storm",
    name: "Lookups of paths that do not exist",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Open, Stat, Access, Readlink, GetXattr, Chdir, Mkdir, Mknod, Rename, Link, Symlink],
    about_calls: true,
    what: "A process tries one path after another until it finds a file, along a search path of \
           directories, suffixes, or languages. Each attempt walks the path in the kernel and fails \
           with ENOENT.",
    when: "More than 100 calls of a process that open, stat, access, or read a link fail with \
           ENOENT, and they are more than half of all such calls that it made; a search path of two \
           directories already fails every other time. If fewer than 10 paths are missing, only \
           calls that open them count. Lookups of a path that any process creates \
           later do not count: the process checks whether the path exists already, or waits for it.",
    cost: "the time of the failed calls",
    advice: "Shorten the search path, or put the directory that has the files first; use absolute \
           paths; cache both hits and misses (dynamic loader: RUNPATH and ldconfig; compilers: \
           fewer -I; Python: fewer entries in sys.path).",
    not_when: "",
    bad: "for dir in search_path:           # 40 directories\n    if os.path.exists(dir + name):\n        \
          return open(dir + name)",
    good: "index = {n: d for d in reversed(search_path) for n in os.listdir(d)}\nreturn open(index[name] + name)",
    reference: "Common in interpreters and loaders: strace -c of a start of Python or Ruby",
};

const ONE_PATH: &str = "Remember that the file is missing and try again after some time only, or create an empty file. \
                        inotify on the directory reports when the file is created.";

/// Processes looking for one path that are tracked separately.
const MAX_LOOKING: usize = 4;

#[derive(Debug, Default)]
struct Process {
    comm: Text,
    lookups: u64,
    missing: Failures,
    /// The opens among them.
    opens: Failures,
    /// Paths that are missing.
    paths: u64,
    examples: Examples,
    open_examples: Examples,
}

/// Look-ups that failed, and their time.
#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    count: u64,
    ns: i64,
}

impl Failures {
    fn add(&mut self, call: &Call) {
        self.count += 1;
        self.ns += call.dur_ns;
    }

    fn remove(&mut self, other: Self) {
        self.count = self.count.saturating_sub(other.count);
        self.ns -= other.ns;
    }
}

/// Look-ups of one path by a process that failed.
#[derive(Debug, Default)]
struct Misses {
    pid: i32,
    all: Failures,
    opens: Failures,
}

rule! {
    pub struct LookupStorm {
        processes: Bounded<i32, Process> = Bounded::new(|process| process.missing.count),
        /// By path.
        misses: Bounded<u64, Vec<Misses>>
            = Bounded::new(|all| all.iter().map(|misses| misses.all.count).sum()),
    }
}

impl Rule for LookupStorm {
    fn call(&mut self, call: &Call, _: &Context) {
        let makes = match call.kind {
            Kind::Mkdir | Kind::Mknod => call.path_key(),
            Kind::Rename | Kind::Link | Kind::Symlink => call.path2_key(),
            _ => call.path_key().filter(|_| call.has_flag("O_CREAT")),
        };
        let made = makes.filter(|_| call.succeeded()).and_then(|path| self.misses.remove(&path));
        for misses in made.into_iter().flatten() {
            // It was not there, and now it is.
            if let Some(process) = self.processes.get_mut(&misses.pid) {
                process.lookups = process.lookups.saturating_sub(misses.all.count);
                process.paths = process.paths.saturating_sub(1);
                process.missing.remove(misses.all);
                process.opens.remove(misses.opens);
            }
        }
        // By descriptor nothing is looked up.
        let looks = !matches!(call.kind, Kind::Mkdir | Kind::Mknod | Kind::Rename | Kind::Link | Kind::Symlink);
        if !looks || call.path_arg.is_none_or(str::is_empty) {
            return;
        }
        let process = self.processes.entry(call.pid);
        call.name_process(&mut process.comm);
        process.lookups += 1;
        if call.failed_with("ENOENT") {
            let open = call.kind == Kind::Open;
            process.missing.add(call);
            process.examples.add(call);
            if open {
                process.opens.add(call);
                process.open_examples.add(call);
            }
            let Some(path) = call.path_key() else { return };
            let all = self.misses.entry(path);
            let own = all.iter().position(|misses| misses.pid == call.pid);
            let at = own.unwrap_or_else(|| {
                process.paths += 1;
                // Failed lookups of further processes stay counted.
                all.truncate(MAX_LOOKING - 1);
                all.push(Misses { pid: call.pid, ..Misses::default() });
                all.len() - 1
            });
            if let Some(misses) = all.get_mut(at) {
                misses.all.add(call);
                if open {
                    misses.opens.add(call);
                }
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (pid, process) in self.processes.iter() {
            let comm = run.process_name(*pid, &process.comm);
            let few = process.paths < MIN_PATHS;
            let (Failures { count: missing, ns: cost }, examples) = match few {
                true => (process.opens, &process.open_examples),
                false => (process.missing, &process.examples),
            };
            let part = missing as f64 / process.lookups.max(1) as f64;
            if missing <= MIN_FAILURES || part <= MIN_PART || !run.matters(cost) {
                continue;
            }
            let (failures, lookups) = (units::count(missing as i64), units::count(process.lookups as i64));
            let paths = match process.paths {
                1 => "a path that does not exist".to_owned(),
                n => format!("{} paths that do not exist", units::count(n as i64)),
            };
            let part = units::percent(part);
            out.push(Found {
                cost_ns: Some(cost),
                title: match few {
                    true => format!("{comm} tries {failures} times to open {paths}: {part} of its look-ups"),
                    false => format!("{failures} of {lookups} look-ups by {comm} find nothing ({part}): {paths}"),
                },
                advice: few.then(|| ONE_PATH.to_owned()),
                subject: Subject::process(*pid, &comm),
                evidence: vec![
                    number("lookups", process.lookups as i64),
                    number("missing", missing as i64),
                    number("missing_paths", process.paths as i64),
                ],
                examples: examples.list(),
                query: calls!("pid = {pid} AND errno = 'ENOENT' AND path_arg <> ''"),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn one_missing_path_is_no_search_path() {
        let mut s = Scenario::new();
        (0..300).for_each(|_| s.stat_missing("/etc/localtime"));
        silent("lookup-storm", s);
        let mut s = Scenario::new();
        (0..300).for_each(|_| s.fail_open("/etc/overrides", "O_RDONLY", "ENOENT"));
        let found = fires("lookup-storm", s);
        assert!(found[0].title.contains("tries 300 times to open a path that does not exist"), "{}", found[0].title);
        assert!(found[0].advice.contains("inotify"), "{}", found[0].advice);
    }

    #[test]
    fn fires_on_a_long_search_path() {
        let mut s = Scenario::new();
        for name in 0..20 {
            for dir in 0..10 {
                s.stat_missing(&format!("/lib/{dir}/{name}"));
            }
            s.open_existing(&format!("/lib/10/{name}"), "O_RDONLY", 4096);
        }
        fires("lookup-storm", s);
    }

    #[test]
    fn silent_on_looks_before_making() {
        let mut s = Scenario::new();
        for name in 0..300 {
            let path = format!("/out/{name}");
            s.stat_missing(&path);
            s.stat_missing(&path);
            let fd = s.open(&path, "O_WRONLY|O_CREAT|O_TRUNC");
            s.close(fd);
        }
        silent("lookup-storm", s);
        // One process asks, another one makes it under another name.
        let mut s = Scenario::new();
        for name in 0..300 {
            let path = format!("/out/{name}");
            s.process(100);
            s.stat_missing(&path);
            s.process(200);
            s.stat_missing(&path);
            let fd = s.open(&format!("/out/.{name}.Xy"), "O_WRONLY|O_CREAT|O_EXCL");
            s.close(fd);
            s.rename(&format!("/out/.{name}.Xy"), &path);
        }
        silent("lookup-storm", s);
    }

    #[test]
    fn silent_when_most_are_found() {
        let mut s = Scenario::new();
        for name in 0..300 {
            s.stat_missing(&format!("/lib/a/{name}"));
            let fd = s.open_existing(&format!("/lib/b/{name}"), "O_RDONLY", 4096);
            s.close(fd);
            s.stat(&format!("/lib/b/{name}"));
        }
        silent("lookup-storm", s);
    }
}
