//! `sync-storm`: little is written before each fsync, or nothing.

use std::collections::{HashMap, HashSet};

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::{Call, FileId};
use crate::finding::{Examples, Group, Subject};
use crate::kind::{Kind, Kinds};
use crate::rule::{Found, Input, Rule, RuleInfo, Run, evidence, number};
use crate::sql;
use crate::state::{Context, Synced};
use crate::stats::Durations;
use crate::text::Text;

/// Syncs of a process on a file from which on they count.
const MIN_SYNCS: u64 = 16;
/// Median of what is dirty before a sync below which it is little, bytes.
const LITTLE: i64 = 16 << 10;
/// Share of the time, from the first of them to the last, that goes into them.
const MIN_PART: f64 = 0.3;
/// What a group commit would put together.
const GROUP: i64 = 8;
/// Syncs of one name from which on it is one of those that are synced in turn: what is written once and
/// synced once has a name of its own.
const MIN_TURNS: u64 = 4;
/// Files that a sentence names.
const NAMED: usize = 3;

static INFO: RuleInfo = RuleInfo {
    id: "sync-storm",
    name: "fsync for little or nothing",
    group: Group::Performance,
    needs: &[Input::Calls],
    about_calls: true,
    what: "A process makes a file durable after every few bytes, and waits for the device most of its time; or it \
           calls fsync on a file in which nothing has changed since the last one.",
    when: "16 or more syncs by one process on one file, with a median of less than 16 KiB \
           written before each, and for 30 % or more of the time from the first to the last of them one is under way; 16 KiB is what devices write in about \
           the same time as one sector. A sync is fsync, fdatasync, msync(MS_SYNC), sync_file_range with a flag that waits, and each write to a \
           file that was opened with O_SYNC or O_DSYNC or with RWF_SYNC or RWF_DSYNC. What was stored through a mapping before an msync is at most the \
           length of the range, and at most what the device was given. Syncs of several files that a process makes durable in turn (a database and its journal) are \
           judged together, four or more of each name. Or 16 or more on a file that was clean: made durable before in the \
           recording and not changed since, by any recorded process: neither written, nor truncated, nor had room \
           reserved or freed in it (fallocate), nor given other attributes.",
    cost: "syncs of a clean file: all their time. Others: seven eighths of the time in which one is under way, as if eight were put together",
    advice: "Put several changes into one sync (group commit, a transaction around many statements); without O_SYNC several writes can share one; \
             fdatasync instead of fsync where the file keeps its length; drop syncs of files that did not change.",
    not_when: "Not when each change is promised to somebody before the next one comes (one client, one transaction at \
               a time).",
    bad: "for (i = 0; i < n; i++) {\n    write(fd, &row[i], sizeof row[i]);\n    fsync(fd);\n}",
    good: "for (i = 0; i < n; i++) {\n    write(fd, &row[i], sizeof row[i]);\n    if (i % 64 == 63)\n        \
           fdatasync(fd);\n}\nfdatasync(fd);",
    reference: "fsync(2); PostgreSQL's commit_delay; SQLite's advice on many INSERTs a transaction",
};

/// One process on one file, or on one name.
#[derive(Debug, Default)]
struct Syncs {
    comm: Text,
    pid: i32,
    tid: i32,
    /// Whether other threads than that one made some of them.
    threads: bool,
    /// Its name, as a number and as text.
    name: u64,
    path: Text,
    /// Time of syncs with something to write, and of those without.
    dirty: Durations,
    clean: Durations,
    /// Time in which at least one of them was under way: threads may wait for the same one.
    busy_ns: i64,
    /// How much was dirty, in buckets as of durations.
    amounts: Durations,
    /// Those that wait for write-back and make nothing durable.
    ranges: u64,
    first_at_ns: i64,
    last_at_ns: i64,
    /// Those right after a sync of another name by the same process.
    turns: u64,
    examples: Examples,
    clean_examples: Examples,
    /// Names of the calls on the clean file.
    clean_calls: Vec<Text>,
}

impl Syncs {
    fn begin(&mut self, call: &Call) {
        if self.first_at_ns == 0 {
            self.first_at_ns = call.ts_ns;
            self.last_at_ns = call.ts_ns;
            self.comm = call.comm_text();
            (self.pid, self.tid) = (call.pid, call.tid);
        }
        self.threads |= self.tid != call.tid;
    }

    /// A sync with so much to write. Calls come in the order in which they end.
    fn add(&mut self, call: &Call, amount: i64) {
        self.busy_ns += (call.ended_at_ns() - call.ts_ns.max(self.last_at_ns)).max(0);
        self.last_at_ns = self.last_at_ns.max(call.ended_at_ns());
        self.dirty.add(call.dur_ns);
        self.amounts.add(amount);
        self.examples.add(call);
    }

    /// Share of the time in which one was under way.
    fn part(&self) -> f64 {
        self.busy_ns as f64 / (self.last_at_ns - self.first_at_ns).max(1) as f64
    }

    fn cost(&self) -> i64 {
        self.busy_ns / GROUP * (GROUP - 1)
    }

    fn is_storm(&self, run: &Run) -> bool {
        self.dirty.count >= MIN_SYNCS
            && self.amounts.median_ns() < LITTLE
            && self.part() >= MIN_PART
            && run.matters(self.cost())
    }

    fn is_in_turn(&self) -> bool {
        self.dirty.count >= MIN_TURNS && self.turns * 2 >= self.dirty.count
    }

    /// Whose time it is.
    fn whose(&self) -> &'static str {
        if self.threads { "process" } else { "thread" }
    }
}

/// All syncs of a process.
#[derive(Debug, Default)]
struct Process {
    /// The name that was synced last.
    last: u64,
    busy_ns: i64,
    until_ns: i64,
}

/// The rule's state.
#[derive(Debug)]
pub struct SyncStorm {
    files: Bounded<(i32, FileId), Syncs>,
    /// By name, as a journal that is made for each transaction is another file each time.
    names: Bounded<(i32, u64), Syncs>,
    processes: Bounded<i32, Process>,
}

impl Default for SyncStorm {
    fn default() -> Self {
        Self {
            files: Bounded::new(|syncs| syncs.dirty.count + syncs.clean.count),
            names: Bounded::new(|syncs| syncs.dirty.count),
            processes: Bounded::new(|process| process.busy_ns.unsigned_abs()),
        }
    }
}

impl Rule for SyncStorm {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        Kinds::of(&[Kind::Sync, Kind::SyncRange, Kind::Msync, Kind::Write])
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let Some(synced) = context.synced else { return };
        let (Some(id), Some(file)) = (call.file, context.file(call)) else { return };
        if call.asynchronous || !file.is_regular() {
            return;
        }
        let name = call.path_key().unwrap_or(id.0.unsigned_abs());
        let amount = match synced {
            Synced::All => return,
            Synced::Own => call.moved(),
            Synced::Range => file.dirty.len().min(file.unwaited),
            Synced::File if call.kind == Kind::Msync => mapped(call, context),
            Synced::File => file.dirty.len(),
        };
        let durable_before = file.last_sync.is_some_and(|(sync, _)| {
            file.last_change.is_none_or(|change| change < sync)
        });
        let clean = call.kind == Kind::Sync && amount == 0 && durable_before;
        if amount == 0 && !clean {
            return;
        }
        let syncs = self.files.entry((call.pid, id));
        syncs.begin(call);
        syncs.name = name;
        if clean {
            syncs.last_at_ns = syncs.last_at_ns.max(call.ended_at_ns());
            syncs.clean.add(call.dur_ns);
            syncs.clean_examples.add(call);
            if !syncs.clean_calls.iter().any(|name| **name == *call.syscall) {
                syncs.clean_calls.push(call.syscall_text());
            }
            return;
        }
        syncs.ranges += u64::from(synced == Synced::Range);
        syncs.add(call, amount);
        let process = self.processes.entry(call.pid);
        process.busy_ns += (call.ended_at_ns() - call.ts_ns.max(process.until_ns)).max(0);
        process.until_ns = process.until_ns.max(call.ended_at_ns());
        let before = std::mem::replace(&mut process.last, name);
        let syncs = self.names.entry((call.pid, name));
        syncs.begin(call);
        syncs.name = name;
        if syncs.path.is_empty() {
            syncs.path = match call.path {
                Some(_) => call.path_text(),
                None => file.name().into(),
            };
        }
        syncs.turns += u64::from(before != name && before != 0);
        syncs.add(call, amount);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let in_turn = self.in_turn(run, out);
        for ((pid, file), syncs) in self.files.iter() {
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            let (mut subject, mut query) = (
                Subject::process(syncs.pid, &syncs.comm).with_file(*file, path),
                format!("pid = {pid} AND file_id = {} AND {}", file.0, calls()),
            );
            if !syncs.threads {
                subject.tid = Some(syncs.tid);
                query = format!("tid = {} AND file_id = {} AND {}", syncs.tid, file.0, calls());
            }
            let query = sql::calls(&query);
            if syncs.is_storm(run) && !in_turn.contains(&(*pid, syncs.name)) {
                let amount = syncs.amounts.median_ns();
                let what = match syncs.ranges == syncs.dirty.count {
                    true => format!("waits for the write-back of {path}"),
                    false => format!("makes {path} durable"),
                };
                out.push(Found {
                    cost_ns: Some(syncs.cost()),
                    title: format!(
                        "{} {what} {} times, each time after about {}; that takes {} of the {}'s time",
                        syncs.comm,
                        units::count(syncs.dirty.count as i64),
                        units::bytes(amount),
                        units::percent(syncs.part()),
                        syncs.whose(),
                    ),
                    subject: subject.clone(),
                    evidence: vec![
                        number("syncs", syncs.dirty.count as i64),
                        number("median_dirty_bytes", amount),
                        number("median_ns", syncs.dirty.median_ns()),
                        evidence("share_of_time", syncs.part()),
                    ],
                    examples: syncs.examples.list(),
                    query: query.clone(),
                    ..Found::default()
                });
            }
            if syncs.clean.count >= MIN_SYNCS && run.matters(syncs.clean.sum_ns) {
                out.push(Found {
                    cost_ns: Some(syncs.clean.sum_ns),
                    title: format!(
                        "{} calls {} {} times on {path}, in which nothing has changed since the sync before",
                        syncs.comm,
                        syncs.clean_calls.iter().map(Text::as_str).collect::<Vec<_>>().join(" and "),
                        units::count(syncs.clean.count as i64),
                    ),
                    subject,
                    evidence: vec![number("syncs_of_clean_file", syncs.clean.count as i64)],
                    examples: syncs.clean_examples.list(),
                    query,
                    rests_on_absence: true,
                    ..Found::default()
                });
            }
        }
    }
}

impl SyncStorm {
    /// Files that a process syncs in turn, as one finding; returns their names.
    fn in_turn(&self, run: &Run, out: &mut Vec<Found>) -> HashSet<(i32, u64)> {
        let mut groups: HashMap<i32, Vec<&Syncs>> = HashMap::new();
        for ((pid, _), syncs) in self.names.iter().filter(|(_, syncs)| syncs.is_in_turn()) {
            groups.entry(*pid).or_default().push(syncs);
        }
        let mut told = HashSet::new();
        for (pid, mut names) in groups {
            names.sort_by(|a, b| b.dirty.sum_ns.cmp(&a.dirty.sum_ns).then_with(|| a.path.cmp(&b.path)));
            let mut all = Syncs { first_at_ns: i64::MAX, ..Syncs::default() };
            let mut first: Option<&Syncs> = None;
            for syncs in names.iter().copied() {
                let first = first.get_or_insert(syncs);
                all.threads |= syncs.threads || syncs.tid != first.tid;
                all.dirty.merge(&syncs.dirty);
                all.amounts.merge(&syncs.amounts);
                all.busy_ns = all.busy_ns.saturating_add(syncs.busy_ns);
                all.first_at_ns = all.first_at_ns.min(syncs.first_at_ns);
                all.last_at_ns = all.last_at_ns.max(syncs.last_at_ns);
                syncs.examples.list().into_iter().take(2).for_each(|example| all.examples.keep(example));
            }
            let Some(first) = first.filter(|_| names.len() > 1) else { continue };
            // Threads may wait for different files at the same time.
            let process = self.processes.get(&pid).map_or(i64::MAX, |process| process.busy_ns);
            all.busy_ns = all.busy_ns.min(process);
            if !all.is_storm(run) {
                continue;
            }
            let one = |syncs: &&Syncs| format!("{} ({})", syncs.path, units::duration(syncs.dirty.sum_ns));
            let mut list: Vec<String> = names.iter().take(NAMED).map(one).collect();
            if names.len() > NAMED {
                list.push(format!("and {} more", units::count((names.len() - NAMED) as i64)));
            }
            let amount = all.amounts.median_ns();
            out.push(Found {
                cost_ns: Some(all.cost()),
                title: format!(
                    "{} makes {} files durable in turn, {} times together, each time after about {}; that takes {} of the {}'s time: {}",
                    first.comm,
                    units::count(names.len() as i64),
                    units::count(all.dirty.count as i64),
                    units::bytes(amount),
                    units::percent(all.part()),
                    all.whose(),
                    list.join(", "),
                ),
                subject: Subject::process(pid, &first.comm).with_path(&first.path),
                evidence: vec![
                    number("syncs", all.dirty.count as i64),
                    number("median_dirty_bytes", amount),
                    number("median_ns", all.dirty.median_ns()),
                    evidence("share_of_time", all.part()),
                    number("files_in_turn", names.len() as i64),
                ],
                examples: all.examples.list(),
                query: sql::calls(&format!("pid = {pid} AND {}", calls())),
                advice: Some(format!(
                    "One change costs a sync of each of these files: fewer, larger transactions save all of them; a database may have a way to commit \
                     that needs one file only (SQLite: PRAGMA journal_mode=WAL). {}",
                    INFO.advice
                )),
                ..Found::default()
            });
            told.extend(names.iter().map(|syncs| (pid, syncs.name)));
        }
        told
    }
}

/// What an msync had to write at most: stores into mapped memory are no calls.
fn mapped(call: &Call, context: &Context) -> i64 {
    let length = call.size.unwrap_or(0).max(0);
    match context.below.written_bytes {
        0 => length,
        written => length.min(written),
    }
}

/// The calls that count, and those that write.
fn calls() -> &'static str {
    "(call_writes(syscall) OR syscall IN ('fsync', 'fdatasync', 'msync', 'sync_file_range', 'IORING_OP_FSYNC', \
     'IORING_OP_SYNC_FILE_RANGE', 'IOCB_CMD_FSYNC', 'IOCB_CMD_FDSYNC'))"
}

#[cfg(test)]
mod tests;
