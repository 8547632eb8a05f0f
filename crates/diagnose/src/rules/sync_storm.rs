//! `sync-storm`: little is written before each fsync, or nothing.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::prelude::*;
use crate::state::descriptors::Description;
use crate::state::Synced;

/// Syncs of a process on a file from which on they count.
const MIN_SYNCS: u64 = 16;
/// Fewer dirty bytes than this before a sync are little.
const LITTLE: i64 = 16 << 10;
/// Share of the syncs before which it is little.
const MOST: f64 = 0.75;
/// The same where each commit has two: of the data, at most so many bytes, and then of a page that names them. Less than
/// half, as one of the syncs may be alone.
const PAIRED: f64 = 0.4;
const SOME: i64 = 64 << 10;
/// Share of the time, from the first of them to the last, that goes into them.
const MIN_PART: f64 = 0.1;
/// Syncs that write again and again a file that is so many times smaller than all that they write: one sync for
/// several changes writes it less often, too.
const REWRITES: i64 = 16;
const MIN_REWRITES: u64 = 64;
/// Syncs after which they have written as much as there is: a log that starts over at its beginning takes longer.
const SOON: i64 = 64;
/// They write less than this each, most of them.
const MUCH: i64 = 256 << 10;
/// Number of syncs that a group commit would combine.
const GROUP: i64 = 8;
/// Number of syncs of one name from which on it counts as synced in turn: a file that is written
/// once and synced once has a unique name.
const MIN_TURNS: u64 = 4;
/// Syncs of one name in a turn: a journal is synced for its records and for its header.
const MOST_OF_A_TURN: u64 = 4;
/// A sync that takes more times the median than this waited for something else than its few bytes.
const SLOW: i64 = 4;
/// Processes with a file in common, and files with other names, that are distinguished.
const MAX_TOLD: usize = 256;
/// Files that a sentence names.
const NAMED: usize = 3;

/// The time of which a title gives the share.
const OF_TIME: &str = "of the time from the first to the last";

/// The calls that have the time.
const SYNCS: [Kind; 4] = [Kind::Sync, Kind::SyncRange, Kind::Msync, Kind::Write];

static INFO: RuleInfo = RuleInfo {
    id: "sync-storm",
    name: "fsync for little or no data",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Sync, SyncAll, SyncRange, Msync, Write, Rename, Link],
    about_calls: true,
    what: "A process makes a file durable after every few bytes and waits for the device each time; \
           or it calls fsync on a file that has not changed since the last one.",
    when: "One process makes 16 or more syncs on one file, three quarters or more of them after \
           less than 16 KiB of writes, or after less than 64 KiB and two fifths after less than 16 KiB (the data of \
           a commit, and then a page that names them), and one of them is in progress for 10 % or more of the time \
           from the first to the last. Devices write 16 KiB in about the time of one sector. Or 64 or more syncs, most of them after \
           less than 256 KiB, together write 16 times the length of the file or more, and that length within 64 syncs, here and there rather than \
           on and on: what a sync has written is soon written again. A sync \
           is fsync, fdatasync, msync(MS_SYNC), sync_file_range with a flag that waits, and each \
           write to a file opened with O_SYNC or O_DSYNC or with RWF_SYNC or RWF_DSYNC. The data \
           stored through a mapping before an msync counts as at most the length of the range, and \
           at most the bytes sent to the device. Writes with O_DIRECT since the previous sync \
           belong to a sync. A sync counts for at most four times the median, because longer ones \
           wait for others. Syncs of several files that a process makes durable in turn (a \
           database, its journal, and their directory) are judged together if there are four or \
           more per name, and so are syncs of processes that sync the same files. A new file that \
           is renamed onto an old one does not count: without the sync the rename could leave an \
           empty file. Or a process makes 16 or more new files with little data durable one after \
           another, each before it creates the next, and then gives each another name without a \
           sync of the directory: no name is promised yet, so one sync could serve many. The same holds for files that \
           have one name one after the other, each for one or two syncs, as a log that is rotated often has. Or 16 or \
           more syncs are of a clean file: another sync of it began after its last change and ended \
           before this one began. Changes are those by recorded processes: writes, truncations, \
           fallocate, other attributes.",
    cost: "for syncs of a clean file, all their time. For others, seven eighths of the time in \
           which one is in progress, as if eight were combined, minus the time of slow ones beyond \
           four times the median",
    advice: "Combine several changes in one sync (group commit, a transaction around many \
           statements); without O_SYNC several writes can share one; use fdatasync instead of \
           fsync if the file keeps its length; drop syncs of unchanged files.",
    not_when: "Not when each change is promised to a client before the next one arrives (one \
           client, one transaction at a time).",
    bad: "for (i = 0; i < n; i++) {\n    write(fd, &row[i], sizeof row[i]);\n    fsync(fd);\n}",
    good: "for (i = 0; i < n; i++) {\n    write(fd, &row[i], sizeof row[i]);\n    if (i % 64 == 63)\n        \
           fdatasync(fd);\n}\nfdatasync(fd);",
    reference: "fsync(2); PostgreSQL's commit_delay; SQLite's advice on many INSERTs per \
           transaction",
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
    /// All that was, and the greatest length of the file; of several files together.
    bytes: i64,
    length: i64,
    /// Syncs before which a write did not go on where the one before ended.
    jumped: u64,
    /// The file that had the name last, and how often it was another one than before.
    last_file: Option<FileId>,
    files: u64,
    /// Syncs that wait for write-back but make nothing durable.
    ranges: u64,
    first_at_ns: i64,
    last_at_ns: i64,
    /// Those right after a sync of another name by the same process.
    turns: u64,
    examples: Examples,
    clean_examples: Examples,
    /// Names of the calls on the clean file.
    clean_calls: Vec<Text>,
    /// The file, whether others had the name, too, and whether it is a directory.
    file: Option<FileId>,
    several: bool,
    directory: bool,
    /// All processes that synced it.
    pids: Vec<i32>,
    /// Times that a file of this name was renamed onto another one.
    replaces: u64,
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

    /// A sync with so much to write, `None` of a directory, of a file of this length, and direct writes that took so
    /// long before it. Calls come in the order in which they end.
    fn add(&mut self, call: &Call, amount: Option<i64>, length: i64, direct_ns: i64) {
        self.busy_ns += (call.ended_at_ns() - call.ts_ns.max(self.last_at_ns)).max(0);
        self.busy_ns += direct_ns;
        self.last_at_ns = self.last_at_ns.max(call.ended_at_ns());
        self.dirty.add(call.dur_ns.saturating_add(direct_ns));
        if let Some(amount) = amount {
            self.amounts.add(amount);
            self.bytes = self.bytes.saturating_add(amount);
        }
        self.length = self.length.max(length);
        if self.length == 0 {
            self.bytes = 0;
        }
        self.examples.add(call);
    }

    /// Time in which one was under way, without what the slow ones waited for others.
    fn own_ns(&self) -> i64 {
        let most = self.dirty.median_ns().saturating_mul(SLOW);
        let share = self.dirty.sum_up_to_ns(most) as f64 / self.dirty.sum_ns.max(1) as f64;
        (self.busy_ns as f64 * share.min(1.0)) as i64
    }

    /// Its share of the time from the first to the last.
    fn part(&self) -> f64 {
        self.own_ns() as f64 / (self.last_at_ns - self.first_at_ns).max(1) as f64
    }

    /// The same with all that the slow ones waited for.
    fn busy_part(&self) -> f64 {
        self.busy_ns as f64 / (self.last_at_ns - self.first_at_ns).max(1) as f64
    }

    fn cost(&self) -> i64 {
        self.own_ns() / GROUP * (GROUP - 1)
    }

    fn is_storm(&self, run: &Run) -> bool {
        self.dirty.count >= MIN_SYNCS
            && (self.is_little() || self.is_rewritten())
            && self.part() >= MIN_PART
            && run.matters(self.cost())
    }

    fn is_little(&self) -> bool {
        self.amounts.quantile_ns(MOST) < LITTLE || self.is_paired()
    }

    /// Whether they write the same bytes over and over.
    fn is_rewritten(&self) -> bool {
        self.amounts.count >= MIN_REWRITES
            && self.amounts.quantile_ns(MOST) < MUCH
            && self.length > 0
            && !self.several
            // A log that starts over at its beginning goes on and on.
            && self.jumped * 2 >= self.amounts.count
            && self.bytes / REWRITES >= self.length
            && self.bytes / i64::try_from(self.amounts.count).unwrap_or(i64::MAX).max(1) * SOON >= self.length
    }

    /// How much they write each, in words.
    fn each(&self) -> String {
        let amount = units::bytes(self.amounts.median_ns());
        match self.is_little() {
            true => format!("about {amount}"),
            false => format!("about {amount} ({} in all, for {} of data)", units::bytes(self.bytes), units::bytes(self.length)),
        }
    }

    /// Whether commits are small and have two syncs each.
    fn is_paired(&self) -> bool {
        self.amounts.quantile_ns(PAIRED) < LITTLE && self.amounts.quantile_ns(MOST) < SOME
    }

    fn is_in_turn(&self) -> bool {
        self.dirty.count >= MIN_TURNS && self.turns * MOST_OF_A_TURN >= self.dirty.count
    }

    /// A save into a new file that replaces the old one needs its sync.
    fn is_replacement(&self) -> bool {
        self.replaces * 2 >= self.dirty.count
    }

    /// The same file each time, with others in turn or by several processes.
    fn is_shared(&self) -> bool {
        self.dirty.count >= MIN_TURNS && !self.several && self.pids.len() > 1
    }
}

#[derive(Debug, Default)]
struct Process {
    /// The name that was synced last.
    last: u64,
    busy_ns: i64,
    until_ns: i64,
    /// New files that were made durable one by one.
    each: Syncs,
    /// Of which so many got another name, and so many directories were synced then.
    renamed: u64,
    promised: u64,
    /// Whether the last sync was of a new file that has no other name yet.
    begun: bool,
    /// The names that they got.
    targets: HashSet<u64>,
}

impl Process {
    /// A sync of a file that was made since the last one.
    fn add_new(&mut self, call: &Call, amount: i64) {
        self.each.begin(call);
        self.each.add(call, Some(amount), 0, 0);
        self.begun = true;
    }

    fn rename(&mut self, call: &Call) {
        if !std::mem::take(&mut self.begun) || !call.succeeded() {
            return;
        }
        self.renamed += 1;
        if let Some(target) = call.path2_key().filter(|_| self.targets.len() < MAX_TOLD) {
            self.targets.insert(target);
        }
    }

    /// Whether most of them could have been made durable together.
    fn is_one_by_one(&self, run: &Run) -> bool {
        let count = self.each.dirty.count;
        self.each.is_storm(run)
            && self.renamed * 2 >= count
            && self.promised * 2 < count
            && self.targets.len() as u64 * 2 >= self.renamed.min(MAX_TOLD as u64)
    }
}

rule! {
    pub struct SyncStorm {
        files: Bounded<(i32, FileId), Syncs>
            = Bounded::new(|syncs| syncs.dirty.count + syncs.clean.count),
        /// By name, as a journal that is made for each transaction is another file each time.
        names: Bounded<u64, Syncs> = Bounded::new(|syncs| syncs.dirty.count),
        processes: Bounded<i32, Process> = Bounded::new(|process| process.busy_ns.unsigned_abs()),
        /// The end of the last write to a file, and whether one since the last sync began elsewhere.
        ends: Bounded<FileId, (i64, bool)>,
        /// Time of direct writes since the last sync.
        direct: Bounded<(i32, FileId), i64> = Bounded::new(|ns| ns.unsigned_abs()),
    }
}

impl Rule for SyncStorm {
    fn call(&mut self, call: &Call, context: &Context) {
        if matches!(call.kind, Kind::Rename | Kind::Link) {
            if let Some(process) = self.processes.get_mut(&call.pid) {
                process.rename(call);
            }
            let target = call.path2_key().and_then(|path| context.state.files.at_key(path));
            if call.kind == Kind::Rename && call.succeeded() && target.is_some()
                && let Some(syncs) = call.path_key().and_then(|path| self.names.get_mut(&path))
            {
                syncs.replaces += 1;
            }
            return;
        }
        let Some(id) = call.file else { return };
        if call.kind == Kind::Write && let Some((start, end)) = call.range() {
            let (last, jumped) = self.ends.entry(id);
            *jumped |= *last != start;
            *last = end;
        }
        let Some(synced) = context.synced else {
            let direct = context.open().is_some_and(Description::is_direct);
            if direct && call.kind == Kind::Write && !call.asynchronous {
                let ns = self.direct.entry((call.pid, id));
                *ns = ns.saturating_add(call.dur_ns);
            }
            return;
        };
        let Some(file) = context.file(call) else { return };
        let directory = file.is_directory();
        if call.asynchronous || !(directory || file.is_regular()) {
            return;
        }
        if directory || synced == Synced::All {
            self.processes.entry(call.pid).promised += 1;
        }
        let name = call.path_key().unwrap_or(id.0.unsigned_abs());
        let amount = match synced {
            Synced::All => return,
            Synced::Own => call.moved(),
            Synced::Range => file.dirty.len().min(file.unwaited),
            Synced::File if call.kind == Kind::Msync => mapped(call, context),
            // Stores into mapped memory are no calls.
            Synced::File if file.is_mapped_for_writing => file.dirty.len().max(context.below.written_bytes),
            Synced::File => file.dirty.len(),
        };
        if directory {
            self.in_order(call, (name, id), None, 0, 0);
            return;
        }
        let clean = call.kind == Kind::Sync
            && amount == 0
            && context.below.written_bytes == 0
            && !file.is_mapped_for_writing
            && file.is_durable(call.ts_ns);
        if amount == 0 && !clean {
            return;
        }
        let direct_ns = self.direct.remove(&(call.pid, id)).unwrap_or(0);
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
        let length = file.size.unwrap_or(0);
        let jumped = self.ends.get_mut(&id).is_some_and(|(_, jumped)| std::mem::take(jumped));
        syncs.jumped += u64::from(jumped);
        syncs.add(call, Some(amount), length, direct_ns);
        let process = self.processes.entry(call.pid);
        let made = file.created.filter(|created| created.pid == call.pid);
        if made.is_some_and(|created| created.ts_ns >= process.until_ns) && synced == Synced::File {
            process.add_new(call, amount);
        }
        let syncs = self.in_order(call, (name, id), Some(amount), length, direct_ns);
        syncs.jumped += u64::from(jumped);
        if syncs.path.is_empty() {
            syncs.path = match call.path {
                Some(_) => call.path_text(),
                None => file.name().into(),
            };
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let in_turn = self.in_turn(run, out);
        self.one_by_one(run, out);
        self.one_name(run, &in_turn, out);
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
            let query = sql::select(&query);
            if syncs.is_storm(run) && !in_turn.contains(&syncs.name) {
                let amount = syncs.amounts.median_ns();
                let what = match syncs.ranges == syncs.dirty.count {
                    true => format!("waits for the write-back of {path}"),
                    false => format!("makes {path} durable"),
                };
                out.push(Found {
                    cost_ns: Some(syncs.cost()),
                    title: format!(
                        "{} {what} {} times, each time after {}: {} {OF_TIME}",
                        syncs.comm,
                        units::count(syncs.dirty.count as i64),
                        syncs.each(),
                        units::percent(syncs.busy_part()),
                    ),
                    subject: subject.clone(),
                    evidence: vec![
                        number("syncs", syncs.dirty.count as i64),
                        number("median_dirty_bytes", amount),
                        number("median_ns", syncs.dirty.median_ns()),
                        evidence("share_of_time", syncs.busy_part()),
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
                        "{} calls {} {} times on {path}, which has not changed since the previous sync",
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
    /// Adds a sync to the syncs of its name; `amount` is `None` for a directory.
    fn in_order(
        &mut self,
        call: &Call,
        (name, id): (u64, FileId),
        amount: Option<i64>,
        length: i64,
        direct_ns: i64,
    ) -> &mut Syncs {
        let process = self.processes.entry(call.pid);
        process.busy_ns += (call.ended_at_ns() - call.ts_ns.max(process.until_ns)).max(0) + direct_ns;
        process.until_ns = process.until_ns.max(call.ended_at_ns());
        let before = std::mem::replace(&mut process.last, name);
        let syncs = self.names.entry(name);
        syncs.begin(call);
        syncs.name = name;
        syncs.several |= *syncs.file.get_or_insert(id) != id;
        syncs.files += u64::from(syncs.last_file.replace(id) != Some(id));
        syncs.directory = amount.is_none();
        if syncs.pids.len() < MAX_TOLD && !syncs.pids.contains(&call.pid) {
            syncs.pids.push(call.pid);
        }
        if syncs.directory && syncs.path.is_empty() {
            syncs.path = call.path_text();
        }
        syncs.turns += u64::from(before != name && before != 0);
        syncs.add(call, amount, length, direct_ns);
        syncs
    }

    /// Files that processes sync in turn, as one finding; returns their names.
    fn in_turn(&self, run: &Run, out: &mut Vec<Found>) -> HashSet<u64> {
        let mut told = HashSet::new();
        for mut names in self.groups() {
            names.sort_by(|a, b| {
                let key = |s: &&Syncs| (s.directory, Reverse(s.dirty.sum_ns));
                key(a).cmp(&key(b)).then_with(|| a.path.cmp(&b.path))
            });
            let Some(first) = names.first().copied().filter(|first| !first.directory) else { continue };
            let files = names.iter().filter(|syncs| !syncs.directory).count();
            // Saves into a new file under one name count for one file.
            if files < 2 && (first.several || names.len() < 2 && first.pids.len() < 2) {
                continue;
            }
            let mut all = Syncs { first_at_ns: i64::MAX, ..Syncs::default() };
            for syncs in names.iter().copied() {
                all.threads |= syncs.threads || syncs.tid != first.tid;
                all.dirty.merge(&syncs.dirty);
                all.amounts.merge(&syncs.amounts);
                if !syncs.several {
                    all.bytes = all.bytes.saturating_add(syncs.bytes);
                    all.length = all.length.saturating_add(syncs.length);
                    all.jumped += syncs.jumped;
                }
                all.busy_ns = all.busy_ns.saturating_add(syncs.busy_ns);
                all.first_at_ns = all.first_at_ns.min(syncs.first_at_ns);
                all.last_at_ns = all.last_at_ns.max(syncs.last_at_ns);
                all.pids.extend(&syncs.pids);
                syncs.examples.list().into_iter().take(2).for_each(|example| all.examples.keep(example));
            }
            all.pids.sort_unstable();
            all.pids.dedup();
            // Threads may wait for different files at the same time.
            let of_process = |pid| self.processes.get(pid).map_or(0, |process: &Process| process.busy_ns);
            let processes: i64 = all.pids.iter().map(of_process).sum();
            all.busy_ns = all.busy_ns.min(processes).min(all.last_at_ns - all.first_at_ns);
            if !all.is_storm(run) {
                continue;
            }
            out.push(turns(first, &names, &all));
            told.extend(names.iter().map(|syncs| syncs.name));
        }
        told
    }

    /// Names that are synced in turn, or by several processes, by the processes that sync them.
    fn groups(&self) -> Vec<Vec<&Syncs>> {
        let mut groups: Vec<(Vec<i32>, Vec<&Syncs>)> = Vec::new();
        for (_, syncs) in self.names.iter().filter(|(_, syncs)| (syncs.is_in_turn() || syncs.is_shared()) && !syncs.is_replacement()) {
            let mut own = (syncs.pids.clone(), vec![syncs]);
            // All groups that have a process in common become one.
            let (with, others): (Vec<_>, Vec<_>) = groups
                .into_iter()
                .partition(|(pids, _)| pids.iter().any(|pid| own.0.contains(pid)));
            for (pids, names) in with {
                own.0.extend(pids.into_iter().filter(|pid| !syncs.pids.contains(pid)));
                own.1.extend(names);
            }
            groups = others;
            groups.push(own);
        }
        groups.into_iter().map(|(_, names)| names).collect()
    }

    /// New files that have the same name one after the other, as logs that are rotated have.
    fn one_name(&self, run: &Run, told: &HashSet<u64>, out: &mut Vec<Found>) {
        for (name, syncs) in self.names.iter() {
            let told = told.contains(name)
                || self.processes.get(&syncs.pid).is_some_and(|process| {
                    process.promised * 2 >= syncs.dirty.count || process.is_one_by_one(run)
                });
            // Not a log that is rotated now and then.
            let one = syncs.files * 2 >= syncs.dirty.count && syncs.several && syncs.pids.len() == 1 && !syncs.directory && !syncs.is_replacement();
            if told || !one || !syncs.is_storm(run) {
                continue;
            }
            let amount = syncs.amounts.median_ns();
            out.push(Found {
                cost_ns: Some(syncs.cost()),
                costs: Costs::of(&SYNCS).of_all_files(),
                title: format!(
                    "{} makes {} files durable that are {} one after the other, each after about {}: {} {OF_TIME}",
                    syncs.comm,
                    units::count(syncs.files as i64),
                    syncs.path,
                    units::bytes(amount),
                    units::percent(syncs.busy_part()),
                ),
                subject: Subject::process(syncs.pid, &syncs.comm).with_path(&syncs.path),
                evidence: vec![
                    number("syncs", syncs.dirty.count as i64),
                    number("median_dirty_bytes", amount),
                    number("median_ns", syncs.dirty.median_ns()),
                    evidence("share_of_time", syncs.busy_part()),
                ],
                examples: syncs.examples.list(),
                query: calls!("pid = {} AND path = {} AND {}", syncs.pid, sql::quote(&syncs.path), calls()),
                advice: Some(
                    "Let each file grow larger before the next one begins, and sync it less often (the size at which a log is rotated), or \
                     sync several of them together."
                        .to_owned(),
                ),
                ..Found::default()
            });
        }
    }

    /// New files that are made durable one by one.
    fn one_by_one(&self, run: &Run, out: &mut Vec<Found>) {
        for (pid, process) in self.processes.iter().filter(|(_, process)| process.is_one_by_one(run)) {
            let each = &process.each;
            out.push(Found {
                cost_ns: Some(each.cost()),
                costs: Costs::of(&[Kind::Sync]).of_all_files(),
                title: format!(
                    "{} makes {} new files durable one by one, each after about {} and before it creates the next: {} {OF_TIME}",
                    each.comm,
                    units::count(each.dirty.count as i64),
                    units::bytes(each.amounts.median_ns()),
                    units::percent(each.busy_part()),
                ),
                subject: Subject::process(*pid, &each.comm),
                evidence: vec![
                    number("new_files_synced", each.dirty.count as i64),
                    number("median_dirty_bytes", each.amounts.median_ns()),
                    number("median_ns", each.dirty.median_ns()),
                    evidence("share_of_time", each.busy_part()),
                ],
                examples: each.examples.list(),
                query: calls!("pid = {pid} AND {}", calls()),
                advice: Some(
                    "Write all of the files first, then sync them, then give them their names; the first syncs of such a batch write most of the other files as well. \
                     syncfs covers all files of a file system."
                        .to_owned(),
                ),
                ..Found::default()
            });
        }
    }
}

/// The finding about files that are synced in turn.
fn turns(first: &Syncs, names: &[&Syncs], all: &Syncs) -> Found {
    let one = |syncs: &&Syncs| format!("{} ({})", syncs.path, units::duration(syncs.dirty.sum_ns));
    let mut list: Vec<String> = names.iter().take(NAMED).map(one).collect();
    if names.len() > NAMED {
        list.push(format!("and {} more", units::count((names.len() - NAMED) as i64)));
    }
    let amount = all.amounts.median_ns();
    let (several, processes) = (names.len() > 1, all.pids.len());
    let pids: Vec<String> = all.pids.iter().map(i32::to_string).collect();
    let (syncs, size, part) = (units::count(all.dirty.count as i64), all.each(), units::percent(all.busy_part()));
    let who = match processes {
        1 => format!("{} makes", first.comm),
        n => format!("{} and {} make", first.comm, counted(n as i64 - 1, "other process", "other processes")),
    };
    let what = match several {
        true => format!("{} files durable in turn, {syncs} times together", units::count(names.len() as i64)),
        false => format!("{} durable, {syncs} times together", first.path),
    };
    let of = match several {
        true => format!("; {}", list.join(", ")),
        false => String::new(),
    };
    let subject = Subject::process(first.pid, &first.comm);
    Found {
        cost_ns: Some(all.cost()),
        title: format!("{who} {what}, each time after {size}: {part} {OF_TIME}{of}"),
        subject: match first.file.filter(|_| !several) {
            Some(file) => Subject { pid: None, ..subject.with_file(file, &first.path) },
            None => subject.with_path(&first.path),
        },
        costs: match several {
            true => Costs::of(&SYNCS).of_all_files().of_processes(all.pids.clone()),
            false => Costs::of(&SYNCS),
        },
        evidence: vec![
            number("syncs", all.dirty.count as i64),
            number("median_dirty_bytes", amount),
            number("median_ns", all.dirty.median_ns()),
            evidence("share_of_time", all.busy_part()),
            number("files_in_turn", names.len() as i64),
            number("processes", processes as i64),
        ],
        examples: all.examples.list(),
        query: calls!("pid IN ({}) AND {}", pids.join(", "), calls()),
        advice: several.then(|| {
            format!(
                "Each change costs a sync of each of these files: use fewer, larger transactions. Some databases can commit \
                 with a single file (SQLite: PRAGMA journal_mode=WAL). {}",
                INFO.advice
            )
        }),
        ..Found::default()
    }
}

/// Upper limit of the bytes that an msync had to write: stores into mapped memory are not calls.
fn mapped(call: &Call, context: &Context) -> i64 {
    let length = call.size.unwrap_or(0).max(0);
    match context.below.written_bytes {
        0 => length,
        written => length.min(written),
    }
}

/// The counted calls: syncs and synchronous writes.
fn calls() -> &'static str {
    "(call_writes(syscall) OR syscall IN ('fsync', 'fdatasync', 'msync', 'sync_file_range', 'IORING_OP_FSYNC', \
     'IORING_OP_SYNC_FILE_RANGE', 'IOCB_CMD_FSYNC', 'IOCB_CMD_FDSYNC'))"
}

#[cfg(test)]
mod tests;
