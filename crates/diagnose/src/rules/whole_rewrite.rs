//! `whole-rewrite`: a file is written whole again for each change.

use crate::names::is_journal;
use crate::prelude::*;

/// Versions of a file from which on they count, and times its greatest length that they have together: fewer are
/// made as a user changes settings.
const MIN_SAVES: u64 = 64;
/// Shorter versions cost their making rather than their bytes.
const SHORT: i64 = 4096;
/// Share of the recorded time from which on that is a reason to make fewer.
const MIN_SHORT_COST: f64 = 0.1;
/// Longer ones are written whole for a reason: images, checkpoints.
const MAX_BYTES: i64 = 64 << 20;
/// Versions that are alike in length differ by less than one in so many bytes.
const ALIKE: i64 = 8;
/// Share of the versions that are like the one before.
const MOST: f64 = 0.75;
/// Share of the recorded time from which on it is worth another form of the file.
const MIN_COST: f64 = 0.03;
/// Versions from which on the least cost of any finding is enough: what it takes to make them comes on top.
const MANY_SAVES: u64 = 100;
/// Files and processes that a finding keeps.
const MAX_TOLD: usize = 256;
/// Files that a query lists.
const MAX_LISTED: usize = 64;

static INFO: RuleInfo = RuleInfo {
    id: "whole-rewrite",
    name: "File written whole for each change",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Open, Close, Read, Write, Truncate, Allocate, Stat, Seek, Sync, Rename],
    about_calls: true,
    what: "A program keeps its state in one file and writes all of it again whenever a part has \
           changed. The work grows with the length of the file times the number of changes, and \
           so do the blocks that the file system allocates and frees.",
    when: "One file is written from its beginning to its end 64 or more times, in place or into \
           another file that is renamed onto it, with 64 times its greatest length in all; a version has 64 MiB at most; three quarters or more of \
           the versions have about the length of the one before (an eighth more or less); and the calls on \
           it take 3 % or more of the recorded time, or 1 % if there are 100 or more versions, or 10 % if no version has 4 KiB, which takes 100 versions. Silent on files that are appended to \
           and that the program does not read whole before each change, on journals of databases, on \
           files that are written over from the beginning on without being cut and never change their length (logs \
           that start over at their beginning), and on files that exist only between two versions.",
    cost: "all calls on the file from its second version on except locks, and except syncs if the file is written in place, minus the \
           part of one version: the changes themselves must be written in any case. The time in which the program \
           makes and parses the contents comes on top, and is often more",
    advice: "Append each change to a log and write the file whole only when the log has grown as \
             long as the file; or keep the state in a database that writes the pages that changed \
             (SQLite, LMDB); or save after so many changes or seconds, and at the end.",
    not_when: "Not when most of the contents are new each time, or when another program reads the \
               file after each change.",
    bad: "for job in jobs:\n    state[job] = run(job)\n    with open(\"state.tmp\", \"w\") as f:\n        json.dump(state, f)\n    \
          os.replace(\"state.tmp\", \"state.json\")",
    good: "with open(\"state.log\", \"a\") as log:\n    for job in jobs:\n        log.write(json.dumps([job, run(job)]) + \"\\n\")\n        log.flush()",
    reference: "Write amplification of copy-on-write at the level of files; log-structured storage",
};

/// A version of a file: being written, or the latest one.
#[derive(Debug, Default)]
struct Version {
    pid: i32,
    comm: Text,
    name: u64,
    path: Text,
    /// Bytes from the beginning on, if it was written one after the other.
    end: i64,
    /// The file's length after the last of these writes, if it is known: others may append to it later.
    length: Option<i64>,
    whole: bool,
    /// Whether it may be a log: it is opened to append to it.
    appends: bool,
    /// Whether it takes the place of an earlier one.
    replaces: bool,
    /// Whether it is written over the one before, which was not cut first.
    over: bool,
    /// The name that it was written under, if it was renamed.
    before: Text,
    time_ns: i64,
    /// Of syncs, besides.
    sync_ns: i64,
    bytes: i64,
    read: i64,
    example: Option<Example>,
    /// The version that is written over. If only its beginning is, that was its header.
    beneath: Option<Box<Version>>,
}

impl Version {
    /// Adds a header, and the name that it got since.
    fn with_header(mut self, header: Version) -> Self {
        self.time_ns = self.time_ns.saturating_add(header.time_ns);
        self.sync_ns = self.sync_ns.saturating_add(header.sync_ns);
        self.bytes = self.bytes.saturating_add(header.bytes);
        self.read = self.read.saturating_add(header.read);
        self.length = header.length.or(self.length);
        if !header.before.is_empty() {
            (self.name, self.path, self.before) = (header.name, header.path, header.before);
            (self.replaces, self.example) = (header.replaces, header.example);
        }
        self
    }
}

/// A name and its versions.
#[derive(Debug, Default)]
struct Saves {
    comm: Text,
    path: Text,
    /// The processes that write or rename it: the first of them.
    pids: Vec<i32>,
    files: Vec<FileId>,
    versions: u64,
    /// Of which so many are as long as the one before, and so many about as long.
    same: u64,
    alike: u64,
    last: i64,
    longest: i64,
    bytes: i64,
    read: i64,
    time_ns: i64,
    renamed: u64,
    /// The name that they were written under, and whether there were several.
    before: Text,
    several: bool,
    examples: Examples,
}

impl Saves {
    fn add_process(&mut self, pid: i32) {
        if self.pids.len() < MAX_TOLD && !self.pids.contains(&pid) {
            self.pids.push(pid);
        }
    }
}

rule! {
    pub struct WholeRewrite {
        versions: Bounded<FileId, Version> = Bounded::new(|version| version.time_ns.unsigned_abs()),
        saves: Bounded<u64, Saves> = Bounded::new(|saves| saves.versions),
    }
}

impl Rule for WholeRewrite {
    fn call(&mut self, call: &Call, context: &Context) {
        if !call.succeeded() {
            return;
        }
        if call.kind == Kind::Rename {
            self.rename(call, context);
            return;
        }
        let Some(id) = call.file else { return };
        let file = context.file(call);
        if !file.is_some_and(|file| file.is_regular() && !file.is_volatile()) {
            return;
        }
        let used = file.is_some_and(|file| file.read > 0 || file.written > 0);
        let had = file.is_some_and(|file| file.written > 0 || file.size.is_some_and(|size| size > 0));
        // Not one that has just been emptied.
        let written = self.versions.get(&id).is_none_or(|version| version.end > 0);
        match call.kind {
            Kind::Open if call.has_flag("O_TRUNC") => self.begin(id, call, context, had),
            Kind::Open if call.has_flag("O_CREAT") && !used && !had => self.begin(id, call, context, false),
            Kind::Truncate if call.arg("length") == Some("0") && written => self.begin(id, call, context, had),
            // In place, without emptying it first.
            Kind::Write if call.offset == Some(0) && written => {
                let beneath = self.versions.remove(&id).map(|version| self.settled(id, version));
                self.begin(id, call, context, had);
                if let Some(version) = self.versions.get_mut(&id) {
                    version.over = true;
                    version.beneath = beneath.map(Box::new);
                }
            }
            _ => {}
        }
        let Some(version) = self.versions.get_mut(&id).filter(|version| version.pid == call.pid) else { return };
        if call.kind == Kind::Sync {
            version.sync_ns = version.sync_ns.saturating_add(call.dur_ns);
            return;
        }
        version.time_ns = version.time_ns.saturating_add(call.dur_ns);
        match call.kind {
            Kind::Read => version.read = version.read.saturating_add(call.moved()),
            Kind::Truncate => version.length = call.arg("length").and_then(|length| length.parse().ok()),
            Kind::Write => {
                version.bytes = version.bytes.saturating_add(call.moved());
                let size = file.and_then(|file| file.size);
                version.length = size.zip(call.range()).map(|(size, (_, end))| size.max(end));
                match call.range() {
                    // A header may be written again when the rest is known.
                    Some((start, end)) if start <= version.end => version.end = version.end.max(end),
                    _ => version.whole = false,
                }
            }
            _ => {}
        }
        // More than a header.
        if version.beneath.as_ref().is_some_and(|beneath| version.end >= beneath.end / 2)
            && let Some(beneath) = version.beneath.take()
        {
            self.finish_whole(id, *beneath);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (_, saves) in self.saves.iter() {
            let (versions, steps) = (saves.versions, saves.versions.saturating_sub(1).max(1));
            let alike = saves.alike as f64 / steps as f64;
            // Changes must be written in any case: together they are a version at most.
            let cost = saves.time_ns - saves.time_ns / i64::try_from(versions.max(1)).unwrap_or(i64::MAX);
            let journal = is_journal(&saves.path);
            let enough = match versions >= MANY_SAVES {
                // Below that they are not even added up with others.
                many if saves.longest < SHORT => many && !run.is_faint() && run.matters_from(cost, MIN_SHORT_COST),
                true => run.matters(cost),
                false => run.matters_from(cost, MIN_COST),
            };
            let often = versions >= MIN_SAVES && saves.bytes / MIN_SAVES as i64 >= saves.longest;
            if !often || alike < MOST || journal || !enough {
                continue;
            }
            out.push(found(saves, cost, run));
        }
    }
}

impl WholeRewrite {
    /// A new version of a file begins with this call, with the contents gone that it had.
    fn begin(&mut self, id: FileId, call: &Call, context: &Context, replaces: bool) {
        if let Some(version) = self.versions.remove(&id) {
            self.finish_whole(id, version);
        }
        let path = call.path_text();
        *self.versions.entry(id) = Version {
            pid: call.pid,
            comm: call.comm_text(),
            name: call.path_key().unwrap_or(id.0.unsigned_abs()),
            path: if path.is_empty() { context.file(call).map_or("", |file| file.name()).into() } else { path },
            whole: true,
            appends: call.has_flag("O_APPEND") || context.open().and_then(|open| open.opened_with("O_APPEND")) == Some(true),
            replaces,
            example: Some(Example::of(call)),
            ..Version::default()
        };
    }

    /// Of a version that is written over another one, the one that counts: if only the beginning was, both are one.
    fn settled(&mut self, id: FileId, mut version: Version) -> Version {
        match version.beneath.take() {
            Some(beneath) if version.end < beneath.end / 2 => beneath.with_header(version),
            Some(beneath) => {
                self.finish_whole(id, *beneath);
                version
            }
            None => version,
        }
    }

    /// A version of a file that another one follows.
    fn finish_whole(&mut self, id: FileId, version: Version) {
        let version = self.settled(id, version);
        if version.length.is_none_or(|length| version.end >= length) {
            self.finish(id, version);
        }
    }

    /// A file takes the name of another one.
    fn rename(&mut self, call: &Call, context: &Context) {
        let files = &context.state.files;
        let (Some(from), Some(to)) = (call.path_key(), call.path2_key()) else { return };
        if call.has_flag("RENAME_EXCHANGE") {
            return;
        }
        let old = files.at_key(to);
        if let Some(old) = old
            && let Some(version) = self.versions.remove(&old)
        {
            let version = self.settled(old, version);
            self.finish(old, version);
        }
        let Some(id) = files.at_key(from) else { return };
        let Some(version) = self.versions.remove(&id) else { return };
        let mut version = self.settled(id, version);
        let saves = self.saves.entry(to);
        saves.add_process(version.pid);
        saves.add_process(call.pid);
        version.name = to;
        version.before = call.path_text();
        version.path = call.path2.unwrap_or("").into();
        version.replaces = old.is_some();
        // Fewer versions would need fewer syncs, too, and without its sync none may take the name.
        version.time_ns = version.time_ns.saturating_add(call.dur_ns).saturating_add(version.sync_ns);
        version.example = Some(Example::of(call));
        let kept = Version {
            pid: version.pid,
            name: to,
            path: version.path.clone(),
            ..Version::default()
        };
        self.finish(id, version);
        // Reads until it is replaced are part of the next change.
        *self.versions.entry(id) = kept;
    }

    fn finish(&mut self, id: FileId, version: Version) {
        // Of one that was renamed: what read it since.
        if version.bytes == 0 {
            if let Some(saves) = self.saves.get_mut(&version.name) {
                saves.time_ns = saves.time_ns.saturating_add(version.time_ns);
                saves.read = saves.read.saturating_add(version.read);
            }
            return;
        }
        // A log is not read before it starts over.
        let log = version.appends && version.read < version.end;
        if !version.whole || log || version.end > MAX_BYTES {
            return;
        }
        let saves = self.saves.entry(version.name);
        let before = std::mem::replace(&mut saves.last, version.end);
        saves.longest = saves.longest.max(version.end);
        saves.add_process(version.pid);
        if saves.files.len() < MAX_TOLD && !saves.files.contains(&id) {
            saves.files.push(id);
        }
        // Of a log that starts over at its beginning all contents are new.
        if !version.replaces || version.over && before == version.end {
            return;
        }
        saves.comm = version.comm;
        saves.path = version.path;
        saves.versions += 1;
        if !version.before.is_empty() {
            saves.renamed += 1;
            if saves.before.is_empty() || saves.before == version.before {
                saves.before = version.before;
            } else {
                saves.several = true;
            }
        }
        if before > 0 && saves.versions > 1 {
            saves.same += u64::from(before == version.end);
            saves.alike += u64::from((before - version.end).abs() <= before / ALIKE);
        }
        saves.bytes = saves.bytes.saturating_add(version.bytes);
        saves.read = saves.read.saturating_add(version.read);
        saves.time_ns = saves.time_ns.saturating_add(version.time_ns);
        if let Some(example) = version.example {
            saves.examples.keep(example);
        }
    }
}

/// The finding about a file that is written whole again and again.
fn found(saves: &Saves, cost: i64, run: &Run) -> Found {
    const KINDS: [Kind; 8] =
        [Kind::Open, Kind::Close, Kind::Read, Kind::Write, Kind::Truncate, Kind::Allocate, Kind::Stat, Kind::Seek];
    let path = &*saves.path;
    let versions = saves.versions as i64;
    let first = saves.pids.first().copied().unwrap_or(0);
    let comm = run.process_name(first, &saves.comm);
    let pids: Vec<String> = saves.pids.iter().map(i32::to_string).collect();
    let who = match saves.pids.len() {
        1 => format!("{comm} writes"),
        2 => format!("{comm} and another process write"),
        n if n < MAX_TOLD => format!("{comm} and {} other processes write", units::count(n as i64 - 1)),
        n => format!("{comm} and {} or more other processes write", units::count(n as i64 - 1)),
    };
    let costs = match saves.renamed {
        0 => Costs::of(&KINDS),
        _ => Costs::of(&[&KINDS[..], &[Kind::Sync]].concat()).and_renames_by(saves.pids.clone()),
    };
    let costs = costs.of_files(saves.files.clone());
    let mut subject = Subject::process(first, &comm).with_path(path);
    if saves.pids.len() > 1 {
        subject.pid = None;
    }
    if let [file] = saves.files.as_slice() {
        subject = subject.with_file(*file, path);
    }
    let load = match saves.read {
        0 => String::new(),
        read => format!(", and {} read from it", units::bytes(read)),
    };
    let same = saves.same * 2 >= saves.versions;
    Found {
        cost_ns: Some(cost),
        costs,
        title: format!(
            "{who} {path} whole {} times: {} written{load}, and it is never longer than {}",
            units::count(versions),
            units::bytes(saves.bytes),
            units::bytes(saves.longest),
        ),
        subject,
        evidence: [
            number("versions", versions),
            number("versions_renamed", saves.renamed as i64),
            number("bytes_written", saves.bytes),
            number("bytes_read", saves.read),
            number("longest_bytes", saves.longest),
        ]
        .into_iter()
        .chain((saves.pids.len() < MAX_TOLD).then(|| number("processes", saves.pids.len() as i64)))
        .collect(),
        examples: saves.examples.list(),
        query: match (saves.pids.as_slice(), saves.files.as_slice()) {
            ([pid], [file]) if saves.renamed == 0 => calls!("pid = {pid} AND file_id = {file}"),
            (told, _) if told.len() < MAX_TOLD => calls!("pid IN ({}) AND {}", pids.join(", "), whose(saves)),
            // Not all are known.
            _ => calls!("{}", whose(saves)),
        },
        caveats: match (same, saves.read) {
            (true, _) => vec!["most versions have the same length, so all of their contents may be new each time".to_owned()],
            (false, 0) => vec!["the program does not read it, so all of its contents may be new each time".to_owned()],
            _ => Vec::new(),
        },
        advice: (saves.longest < SHORT).then(|| {
            "Write it less often: after so many changes or seconds, and at the end; or keep several such values in one \
             file. Each version costs a new file, its rename, and the removal of the one before."
                .to_owned()
        }),
        ..Found::default()
    }
}

/// The condition on the file's calls, by any of its names.
fn whose(saves: &Saves) -> String {
    let path = sql::quote(&saves.path);
    let listed: Vec<String> = saves.files.iter().take(MAX_LISTED).map(|file| file.0.to_string()).collect();
    let of = match saves.renamed > 0 && !saves.several {
        true => format!("path = {}", sql::quote(&saves.before)),
        false => format!("file_id IN ({})", listed.join(", ")),
    };
    format!("(path = {path} OR path2 = {path} OR {of})")
}

#[cfg(test)]
mod tests;
