//! Findings of one rule that differ by a number in a name only, as one.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::units;

use crate::claims::QUEUES;
use crate::finding::{EXAMPLES, Finding, Group, Severity};
use crate::kind::Kinds;
use crate::names::{common_directory, directory, role};
use crate::rule::{Run, number};
use crate::text_key::key_of;

/// Number of files in one directory from which on they are counted instead of named.
const MANY_FILES: usize = 10;
/// Programs that run others.
const INTERPRETERS: [&str; 9] = [
    "bash", "dash", "java", "node", "perl", "php", "python", "ruby", "sh",
];
/// Files and threads that a query names one by one.
const MAX_NAMED: usize = 256;

/// Length of a word of hexadecimal digits from which on it is a number.
const HEX: usize = 8;

/// A name without its numbers: `/data/#.sst` of `/data/000123.sst`, and `/log/@#.s` of
/// `/log/@400000006b0bd811.s`. Digits of the directory stay.
fn pattern(path: &str) -> String {
    let (directory, name) = match path.rfind('/') {
        Some(at) => path.split_at(at),
        None => ("", path),
    };
    let mut pattern = directory.to_owned();
    for word in name.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let end = word.trim_end_matches(|c: char| c.is_ascii_alphanumeric());
        let (word, end) = match end.is_empty() {
            true => (word, ""),
            false => word.split_at(word.len() - word.chars().next_back().map_or(0, char::len_utf8)),
        };
        let is_hex = word.len() >= HEX && word.chars().all(|c| c.is_ascii_hexdigit());
        if is_hex && word.contains(|c: char| c.is_ascii_digit()) {
            pattern.push('#');
        } else {
            let mut digits = false;
            for c in word.chars() {
                let digit = c.is_ascii_digit();
                if !digit {
                    pattern.push(c);
                } else if !digits {
                    pattern.push('#');
                }
                digits = digit;
            }
        }
        pattern.push_str(end);
    }
    pattern
}

/// Findings of one rule, the worst first, with those put together that say the same, but of
/// another file of a numbered row, of another thread, of another process of the same name
/// with the same file or row of files, or of another worker of a server.
pub(crate) fn together(found: Vec<Finding>, run: &Run) -> Vec<Finding> {
    let mut groups: Vec<Vec<Finding>> = Vec::new();
    let (mut places, mut workers) = (BTreeMap::new(), BTreeMap::new());
    for finding in found {
        let subject = &finding.subject;
        let kinds = finding
            .scopes
            .first()
            .map_or(Kinds::NONE, |scope| scope.kinds);
        // Without a file or a thread it is about a process as a whole.
        if subject.file_id.is_none() && subject.tid.is_none() {
            let place = worker(&finding, run).map(|worker| {
                // One process may have several, such as one for each query that it sends.
                let calls = without_process(&finding);
                let evidence = finding.evidence.first().map(|e| e.name.clone());
                *workers
                    .entry((worker, calls, evidence, kinds))
                    .or_insert(groups.len())
            });
            match place.and_then(|place| groups.get_mut(place)) {
                Some(group) => group.push(finding),
                None => groups.push(vec![finding]),
            }
            continue;
        }
        let key = (
            // Programs of one name may be different ones, as scripts are; not with the same files.
            subject
                .pid
                .filter(|_| subject.path.is_none() || subject.comm.is_none()),
            subject.comm.as_deref().map(|comm| role(comm).to_owned()),
            subject.path.as_deref().map(pattern),
            // Rules that say several things have other numbers for each.
            finding.evidence.first().map(|e| e.name.clone()),
            // Reads are not like writes.
            kinds,
        );
        let place = *places.entry(key).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    let mut groups = by_place(groups, |path| Some(directory(path)));
    if run.is_faint() {
        // Of a tree of directories, too, as each for itself says nothing.
        groups = by_place(groups, |_| None);
    }
    groups
        .into_iter()
        .filter_map(|group| merge(group, run))
        .collect()
}

/// The parent and the command of the process that a finding is about. Processes that have both in
/// common do the same work: the workers of a server, or the runs of a program. Whatever its arguments are, a
/// program waits for a processor alike; what an interpreter runs may be several programs.
fn worker(finding: &Finding, run: &Run) -> Option<(i32, u64)> {
    let process = run.state.process(finding.subject.pid?)?;
    let program = match finding.rule {
        QUEUES if !is_interpreter(&process.comm) => key_of(&process.comm),
        _ => process.command?,
    };
    Some((process.ppid?, program))
}

/// The query of a finding, for whatever process.
fn without_process(finding: &Finding) -> String {
    let pid = finding.subject.pid.unwrap_or_default();
    list(
        &finding.query,
        "pid",
        &pid.to_string(),
        &BTreeSet::from([0]),
    )
}

/// Whether a program runs others, which are named in its arguments.
fn is_interpreter(comm: &str) -> bool {
    INTERPRETERS.iter().any(|name| {
        let version = comm.strip_prefix(name);
        version.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
    })
}

/// Groups about files of one place, with whatever names, as one where the files are many.
fn by_place(groups: Vec<Vec<Finding>>, place: impl Fn(&str) -> Option<&str>) -> Vec<Vec<Finding>> {
    let key = |group: &Vec<Finding>| {
        let finding = group.first()?;
        let subject = &finding.subject;
        let path = subject
            .path
            .as_deref()
            .filter(|_| subject.file_id.is_some())?;
        let kinds = finding
            .scopes
            .first()
            .map_or(Kinds::NONE, |scope| scope.kinds);
        let evidence = finding.evidence.first().map(|e| e.name.clone());
        let comm = subject.comm.as_deref().map(|comm| role(comm).to_owned());
        let place = place(path).map(str::to_owned);
        Some((subject.pid, comm, place, evidence, kinds))
    };
    let mut files: BTreeMap<_, usize> = BTreeMap::new();
    for group in &groups {
        if let Some(key) = key(group) {
            *files.entry(key).or_default() += group.len();
        }
    }
    let mut together: Vec<Vec<Finding>> = Vec::new();
    let mut places = BTreeMap::new();
    for group in groups {
        let many = key(&group).filter(|key| files.get(key).is_some_and(|n| *n >= MANY_FILES));
        let place = many.map(|key| *places.entry(key).or_insert(together.len()));
        match place.and_then(|place| together.get_mut(place)) {
            Some(others) => others.extend(group),
            None => together.push(group),
        }
    }
    together
}

/// One finding of several: the worst speaks for all.
fn merge(group: Vec<Finding>, run: &Run) -> Option<Finding> {
    let count = group.len();
    let files: BTreeSet<i64> = group.iter().filter_map(|f| f.subject.file_id).collect();
    let threads: BTreeSet<i32> = group.iter().filter_map(|f| f.subject.tid).collect();
    let processes: BTreeSet<i32> = group.iter().filter_map(|f| f.subject.pid).collect();
    let cost = group.iter().filter_map(|f| f.cost_ns);
    let cost = cost.reduce(|a, b| a.saturating_add(b));
    let severity = group.iter().map(|f| f.severity).max();
    let mut others = group.into_iter();
    let mut first = others.next()?;
    if count == 1 {
        return Some(first);
    }
    let own = first.subject.path.as_deref().map(directory);
    let paths = others.as_slice().iter();
    let paths = paths.filter_map(|f| f.subject.path.as_deref());
    let in_one = own.filter(|own| paths.clone().all(|path| directory(path) == *own));
    // Only faint ones are together from several directories.
    let below = own.filter(|_| run.is_faint());
    let below = below.map(|own| paths.fold(own, |a, b| common_directory(a, directory(b))));
    let in_one = match (in_one, below) {
        (Some(place), _) => Some(("in", place)),
        (None, below) => below.map(|place| ("below", place)),
    };
    let in_one = in_one.filter(|_| files.len() >= MANY_FILES);
    let in_one = in_one.map(|(relation, place)| (relation, place.to_owned()));
    for other in others {
        first.examples.extend(other.examples);
        first.scopes.extend(other.scopes);
        for caveat in other.caveats {
            if !first.caveats.contains(&caveat) {
                first.caveats.push(caveat);
            }
        }
        first.confidence = first.confidence.lower(other.confidence);
    }
    // Those about time show what costs, the others how it began.
    if first.group == Group::Performance {
        first
            .examples
            .sort_by_key(|example| std::cmp::Reverse(example.dur_ns));
    }
    first.examples.truncate(EXAMPLES);
    let more = |n: usize, one: &str, several: &str| match n {
        0 | 1 => None,
        2 => Some(format!("1 more {one}")),
        n => Some(format!("{} more {several}", units::count(n as i64 - 1))),
    };
    // Threads of several processes go without saying.
    let of_one = if processes.len() > 1 {
        1
    } else {
        threads.len()
    };
    let of_files = match &in_one {
        Some((relation, path)) => Some(format!(
            "{} files {relation} {path}",
            units::count(files.len() as i64)
        )),
        None => more(files.len(), "file", "files"),
    };
    let more: Vec<String> = [
        of_files,
        more(of_one, "thread", "threads"),
        more(processes.len(), "process", "processes"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !more.is_empty() {
        let like = match (&in_one, first.group) {
            // Which one the numbers are about.
            (Some(_), Group::Performance) => "the costliest of",
            (Some(_), Group::Correctness) => "one of",
            (None, _) => "the same of",
        };
        let it = if in_one.is_some() { "" } else { " like it" };
        first.title = format!("{}; {like} {}{it}", first.title, more.join(" and "));
    }
    if let (Some(file), true) = (first.subject.file_id, files.len() > 1) {
        first.query = list(&first.query, "file_id", &file.to_string(), &files);
        first.evidence.push(number("files", files.len() as i64));
    }
    if let (Some(tid), true) = (first.subject.tid, threads.len() > 1) {
        first.query = list(&first.query, "tid", &tid.to_string(), &threads);
        first
            .evidence
            .push(number("alike_threads", threads.len() as i64));
    }
    if let (Some(pid), true) = (first.subject.pid, processes.len() > 1) {
        first.query = list(&first.query, "pid", &pid.to_string(), &processes);
        first
            .evidence
            .push(number("alike_processes", processes.len() as i64));
    }
    if let Some((_, path)) = in_one {
        first.subject.file_id = None;
        first.subject.path = Some(path);
    }
    // A thread loses no more than all of the time.
    let most = run
        .span_ns
        .saturating_mul(threads.len().max(processes.len()).max(1) as i64);
    first.cost_ns = cost.map(|cost| cost.min(most));
    first.severity = match first.cost_ns {
        Some(cost) => severity.max(Some(Severity::by_share(cost, run.span_ns))),
        None => severity,
    }
    .unwrap_or(Severity::Low);
    Some(first)
}

/// A query for one value of a column made one for several.
fn list<T: ToString>(query: &str, column: &str, one: &str, all: &BTreeSet<T>) -> String {
    let values: Vec<String> = all.iter().take(MAX_NAMED).map(T::to_string).collect();
    let wanted = format!("{column} = {one} ");
    let several = format!("{column} IN ({}) ", values.join(", "));
    // A space marks the end of the number.
    format!("{query} ")
        .replacen(&wanted, &several, 1)
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, fires};

    #[test]
    fn only_digits_of_the_name_are_left_out() {
        assert_eq!(pattern("/db1/000123.sst"), "/db1/#.sst");
        assert_eq!(pattern("a1b22"), "a#b#");
        assert_eq!(pattern("/db1/日本7"), "/db1/日本#");
        assert_eq!(pattern("/log/@400000006b0bd811169e003c.s"), "/log/@#.s");
        assert_eq!(pattern("/log/deadbeef.db"), "/log/deadbeef.db");
        assert_eq!(pattern("/log/7-日"), "/log/#-日");
    }

    #[test]
    fn queries_name_all() {
        let all = BTreeSet::from([12, 120]);
        assert_eq!(
            list("WHERE pid = 1 AND tid = 12", "tid", "12", &all),
            "WHERE pid = 1 AND tid IN (12, 120)"
        );
        assert_eq!(
            list("WHERE tid = 120 AND x", "tid", "12", &all),
            "WHERE tid = 120 AND x"
        );
    }

    fn syncs(s: &mut Scenario, path: &str) {
        let fd = s.open(path, "O_WRONLY|O_CREAT");
        for _ in 0..100 {
            s.write(fd, 200);
            s.fsync(fd);
        }
        s.close(fd);
    }

    #[test]
    fn processes_of_one_name_with_the_same_files_are_one_finding() {
        let mut s = Scenario::new();
        for pid in [100, 200, 300] {
            s.process(pid);
            syncs(&mut s, &format!("/data/{pid}.log"));
            syncs(&mut s, &format!("/own/{pid}/log"));
        }
        let found = fires("sync-storm", s);
        assert_eq!(found.len(), 4, "{found:#?}");
        let all = found.iter().find(|f| f.title.contains("like it")).unwrap();
        assert!(
            all.title
                .ends_with("; the same of 2 more files and 2 more processes like it"),
            "{}",
            all.title
        );
        assert_eq!(
            all.evidence.last().map(|e| (&*e.name, e.value)),
            Some(("alike_processes", 3.0))
        );
        assert!(
            all.query.contains("tid IN (100, 200, 300)"),
            "{}",
            all.query
        );
    }

    /// Workers of a server are forks of it. Programs of one name may do different things.
    #[test]
    fn workers_of_one_server_are_one_finding() {
        let starved = |commands: [&str; 3]| {
            let mut s = Scenario::new();
            for (pid, command) in [200, 300, 400].into_iter().zip(commands) {
                s.process(pid);
                let fd = s.open(&format!("/data/{pid}/log"), "O_RDWR|O_CREAT");
                for _ in 0..200 {
                    s.wants_cpu(700_000);
                    s.fdatasync(fd);
                }
                s.worker_ends(100, command);
            }
            fires("cpu-starvation", s)
        };
        let found = starved(["postgres -D /pg"; 3]);
        assert_eq!(found.len(), 1, "{found:#?}");
        let [one] = &found[..] else { unreachable!() };
        let end = "; the same of 2 more processes like it";
        assert!(one.title.ends_with(end), "{}", one.title);
        assert_eq!(one.cost_ns, Some(3 * 140_000_000));
        let pids = "pid IN (200, 300, 400)";
        assert!(one.query.contains(pids), "{}", one.query);
        let found = starved(["python3 a.py", "python3 b.py", "python3 c.py"]);
        assert_eq!(found.len(), 3, "{found:#?}");
        // Runs of a program with other arguments each.
        let found = starved(["reprepro a.deb", "reprepro b.deb", "reprepro c.deb"]);
        assert_eq!(found.len(), 1, "{found:#?}");
    }

    /// Each below a thousandth of the time, in directories of their own.
    #[test]
    fn losses_too_small_to_note_are_a_finding_together() {
        let mut s = Scenario::new();
        for i in 0..4000 {
            let path = format!("/metrics/host{}/load.wsp", i % 200);
            let fd = s.open_existing(&path, "O_RDWR", 1 << 20);
            for at in 0..12 {
                s.pread(fd, 2000, (at * 7 % 12) * 4096);
            }
            s.close(fd);
            s.wait_us(100);
        }
        let found = fires("redundant-read", s);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(
            found[0]
                .title
                .ends_with("; the costliest of 200 files below /metrics"),
            "{}",
            found[0].title
        );
        let path = found[0].subject.path.as_deref();
        assert_eq!(path, Some("/metrics"));
    }

    #[test]
    fn a_row_of_numbered_files_is_one_finding() {
        let mut s = Scenario::new();
        for i in 0..30 {
            syncs(&mut s, &format!("/data/{i:06}.log"));
        }
        syncs(&mut s, "/other/state");
        let found = fires("sync-storm", s);
        assert_eq!(found.len(), 2, "{found:#?}");
        let row = &found[0];
        assert!(
            row.title.ends_with("; the costliest of 30 files in /data"),
            "{}",
            row.title
        );
        assert_eq!(
            row.evidence.last().map(|e| (&*e.name, e.value)),
            Some(("files", 30.0))
        );
        assert!(row.query.contains("file_id IN (1, 2, 3,"), "{}", row.query);
        assert_eq!(row.subject.path.as_deref(), Some("/data"));
        let each = found[1].cost_ns.unwrap();
        assert!(row.cost_ns.unwrap() > 29 * each);
    }
}
