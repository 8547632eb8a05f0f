//! `temp-leak`: temporary files stay behind.

use std::collections::{BTreeMap, HashSet};

use crate::names::{directory, file_name, is_rebuilt, is_temporary};
use crate::prelude::*;

/// Files that stay behind.
const MIN_FILES: usize = 20;
/// Time since a file was closed after which its process, which still runs, does not need it: nanoseconds.
const FORGOTTEN_NS: i64 = 10_000_000_000;
/// Digits in a row that are a random number: createTempFile of Java makes up to 20.
const RANDOM_DIGITS: usize = 15;
/// Characters of a random part of a name at least: mkstemp makes 6, Python 8, and Ruby about 6 behind other numbers.
const RANDOM: usize = 5;
/// Share of the files whose names have one.
const MOST_RANDOM: f64 = 0.8;
/// Directories above such files that are remembered.
const MAX_PLACES: usize = 1 << 16;
/// Directories for what is temporary.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

static INFO: RuleInfo = RuleInfo {
    id: "temp-leak",
    name: "Temporary files that are not removed",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Open, Close, Rename, Link, Unlink],
    about_calls: true,
    what: "A program creates temporary files, closes them, and never removes them. They fill the \
           disk until no program can write, and a directory with very many of them makes each \
           lookup slower.",
    when: "One program creates 20 or more files in one directory that nothing renames, links, or \
           removes; its process, and any that opened them later, has ended, or closed them 10 \
           seconds or more before the end of the recording. Counted are files created with O_EXCL \
           and mode 0600, as mkstemp does, with a temporary name (tmp, temp, .part) or directly in \
           /tmp, /var/tmp, or /dev/shm; files created with O_EXCL and a name that begins with `tmp` \
           or ends in .tmp or .temp; files created with O_RDWR, O_EXCL, and mode 0600 whose names differ only in a \
           random part of letters and digits; files created with O_EXCL and a name with 15 or more digits in a row, as Java's \
           createTempFile does, that the process opens again to read them; and files in another directory named \
           `tmp` or `temp`.",
    cost: "",
    advice: "Remove each file after its last use on every code path: `with TemporaryFile()` or \
           O_TMPFILE, which leave no name behind; unlink right after open; in a shell `trap 'rm \
           -f \"$file\"' EXIT`.",
    not_when: "Not when another program that was not recorded uses them later.",
    bad: "fd = mkstemp(name);\nwrite(fd, part, n);\nclose(fd);",
    good: "fd = open(\"/tmp\", O_TMPFILE | O_RDWR, 0600);\nwrite(fd, part, n);\nclose(fd);",
    reference: "mkstemp(3); open(2), O_TMPFILE; CWE-459",
};

/// Why a file is taken for one that is not meant to stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sign {
    #[default]
    Name,
    /// Only a random number in its name says so.
    Number,
    /// It was made as mkstemp does, and has a random part in its name if the others in its directory differ in it only.
    Private,
}

#[derive(Debug, Default)]
struct Temporary {
    /// Process that opened it last.
    pid: i32,
    comm: Text,
    path: Text,
    sign: Sign,
    /// Whether its process has opened it again to read it.
    read_again: bool,
    closed_at_ns: Option<i64>,
    example: Option<Example>,
}

/// Files of a program that stay behind in one directory.
type Left<'a> = Vec<(&'a FileId, &'a Temporary)>;

rule! {
    pub struct TempLeak {
        files: Bounded<FileId, Temporary>,
        /// Directories with such files somewhere below.
        places: HashSet<u64>,
    }
}

/// Whether a call makes a file that is not meant to stay.
fn is_made_for_a_time(call: &Call, path: &str) -> bool {
    if !call.has_flag("O_CREAT") || is_rebuilt(path) {
        return false;
    }
    let (place, name) = (directory(path), file_name(path).to_ascii_lowercase());
    let common = TEMPORARY.contains(&place);
    let private = call.arg("mode") == Some("0600");
    let surely = name.starts_with("tmp") || name.ends_with(".tmp") || name.ends_with(".temp");
    match call.has_flag("O_EXCL") {
        true if surely || private && (common || is_temporary(path)) => true,
        _ => !common && matches!(file_name(place), "tmp" | "temp"),
    }
}

/// Whether a call makes a file as mkstemp does.
fn is_made_private(call: &Call, path: &str) -> bool {
    let flags = ["O_RDWR", "O_CREAT", "O_EXCL"];
    flags.iter().all(|flag| call.has_flag(flag)) && call.arg("mode") == Some("0600") && !is_rebuilt(path)
}

/// The length of the beginning that both have.
fn common(a: impl Iterator<Item = u8>, b: impl Iterator<Item = u8>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

/// Whether names in one directory differ in a random part only: what is between the beginning and the end that all
/// have in common, with letters that no number has, and with digits or letters of both cases.
fn differ_at_random(names: &[&str]) -> bool {
    let Some((first, rest)) = names.split_first() else { return false };
    let begin = rest.iter().map(|name| common(first.bytes(), name.bytes())).min().unwrap_or(0);
    let end = rest.iter().map(|name| common(first.bytes().rev(), name.bytes().rev())).min().unwrap_or(0);
    let is_random = |name: &&&str| {
        let Some(part) = name.as_bytes().get(begin..name.len().saturating_sub(end)).filter(|part| part.len() >= RANDOM) else {
            return false;
        };
        let any = |is: fn(&u8) -> bool| part.iter().any(is);
        let mixed = any(u8::is_ascii_digit) || any(u8::is_ascii_lowercase) && any(u8::is_ascii_uppercase);
        let plain = part.iter().all(|c| c.is_ascii_alphanumeric() || *c == b'_');
        plain && mixed && any(|c| c.is_ascii_alphabetic() && !c.is_ascii_hexdigit())
    };
    names.iter().filter(is_random).count() as f64 >= names.len() as f64 * MOST_RANDOM
}

/// Whether a call makes a file with a random number in its name.
fn has_random_number(call: &Call, path: &str) -> bool {
    let mut runs = file_name(path).split(|c: char| !c.is_ascii_digit());
    call.has_flag("O_CREAT") && call.has_flag("O_EXCL") && !is_rebuilt(path) && runs.any(|run| run.len() >= RANDOM_DIGITS)
}

impl TempLeak {
    /// Remembers the directories above a file.
    fn is_below(&mut self, path: &str) {
        let mut place = directory(path);
        while self.places.len() < MAX_PLACES && place.len() > 1 && self.places.insert(key_of(place)) {
            place = directory(place);
        }
    }

    /// The files in a directory that is renamed have other names, which may be the final ones.
    fn renamed(&mut self, from: &str, key: u64) {
        if !self.places.remove(&key) {
            return;
        }
        let below = |path: &str| path.strip_prefix(from).is_some_and(|rest| rest.starts_with('/'));
        let moved: Vec<FileId> = self.files.iter().filter(|(_, file)| below(&file.path)).map(|(id, _)| *id).collect();
        for id in moved {
            self.files.remove(&id);
        }
    }
}

impl Rule for TempLeak {
    fn call(&mut self, call: &Call, context: &Context) {
        if !call.succeeded() {
            return;
        }
        match call.kind {
            Kind::Open => {
                let Some(id) = call.file else { return };
                if let Some(file) = self.files.get_mut(&id) {
                    file.read_again |= file.pid == call.pid && !call.has_flag("O_WRONLY");
                    (file.pid, file.closed_at_ns) = (call.pid, None);
                    return;
                }
                let Some(path) = call.path else { return };
                let signs = [
                    (Sign::Name, is_made_for_a_time as fn(&Call, &str) -> bool),
                    (Sign::Number, has_random_number),
                    (Sign::Private, is_made_private),
                ];
                if let Some((sign, _)) = signs.into_iter().find(|(_, has)| has(call, path)) {
                    self.is_below(path);
                    *self.files.entry(id) = Temporary {
                        pid: call.pid,
                        sign,
                        read_again: false,
                        comm: call.comm_text(),
                        path: call.path_text(),
                        closed_at_ns: None,
                        example: Some(Example::of(call)),
                    };
                }
            }
            Kind::Close => {
                if let Some(file) = call.file.and_then(|id| self.files.get_mut(&id)) {
                    file.closed_at_ns = Some(call.ended_at_ns());
                }
            }
            _ => {
                if let (Kind::Rename, Some(from), Some(key)) = (call.kind, call.path, call.path_key()) {
                    self.renamed(from, key);
                }
                let id = call.path_key().and_then(|path| context.state.files.at_key(path));
                if let Some(id) = id.or(call.file) {
                    self.files.remove(&id);
                }
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let mut places: BTreeMap<(&str, &str, bool), Left<'_>> = BTreeMap::new();
        for (id, file) in self.files.iter() {
            let known = run.state.files.get(*id);
            let there = known.is_some_and(|file| file.is_regular() && !file.unlinked);
            let ended = run.state.process(file.pid).is_some_and(|process| process.ended_at_ns.is_some());
            let forgotten = |at: i64| run.state.now_ns() - at >= FORGOTTEN_NS;
            let made = file.read_again || file.sign != Sign::Number;
            if there && made && (ended || file.closed_at_ns.is_some_and(forgotten)) {
                let private = file.sign == Sign::Private;
                places.entry((&file.comm, directory(&file.path), private)).or_default().push((id, file));
            }
        }
        for ((comm, place, private), mut files) in places.into_iter().filter(|(_, files)| files.len() >= MIN_FILES) {
            if private {
                let names: Vec<&str> = files.iter().map(|(_, file)| file_name(&file.path)).collect();
                if !differ_at_random(&names) {
                    continue;
                }
            }
            files.sort_by_key(|(_, file)| file.example.as_ref().map(|example| example.rid));
            let Some((_, first)) = files.first() else { continue };
            let written: i64 = files.iter().filter_map(|(id, _)| run.state.files.get(**id)).map(|file| file.written).sum();
            out.push(Found {
                severity: Some(Severity::Low),
                title: format!(
                    "{comm} leaves {} temporary files with {} in {place}",
                    units::count(files.len() as i64),
                    units::bytes(written),
                ),
                subject: Subject::process(first.pid, comm).with_path(place),
                evidence: vec![number("files", files.len() as i64), number("bytes_written", written)],
                examples: files.iter().filter_map(|(_, file)| file.example.clone()).take(EXAMPLES).collect(),
                query: calls!("comm = {} AND starts_with(path, {}) AND flags LIKE '%O_EXCL%'", sql::quote(comm), sql::quote(&format!("{}/", place.trim_end_matches('/')))),
                rests_on_absence: true,
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    fn parts(mode: &str, name: fn(i32) -> String, after: fn(&mut Scenario, &str)) -> Scenario {
        let mut s = Scenario::new();
        for i in 0..150 {
            let path = name(i);
            let fd = s.open_mode(&path, "O_RDWR|O_CREAT|O_EXCL", mode);
            s.write(fd, 1000);
            s.close(fd);
            after(&mut s, &path);
        }
        s.ends(0);
        s
    }

    fn named(i: i32) -> String {
        format!("/data/work/tmp{i:06x}")
    }

    #[test]
    fn fires_on_files_that_stay() {
        let found = fires("temp-leak", parts("0600", named, |_, _| {}));
        assert_eq!(found[0].title, "program leaves 150 temporary files with 146 KiB in /data/work");
        fires("temp-leak", parts("0600", |i| format!("/tmp/x{i:06x}"), |_, _| {}));
    }

    #[test]
    fn silent_when_they_are_removed_or_renamed() {
        silent("temp-leak", parts("0600", named, |s, path| s.unlink(path)));
        silent("temp-leak", parts("0600", named, |s, path| s.rename(path, &path.replace("tmp", "part-"))));
    }

    #[test]
    fn silent_when_their_directory_is_renamed() {
        let mut s = Scenario::new();
        for i in 0..30 {
            let fd = s.open(&format!("/data/tmp/{i}.gray"), "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 1000);
            s.close(fd);
        }
        s.rename("/data/tmp", "/data/release");
        s.ends(0);
        silent("temp-leak", s);
    }

    #[test]
    fn fires_on_files_that_were_of_use() {
        let reads = |s: &mut Scenario, path: &str| {
            let fd = s.open(path, "O_RDONLY");
            s.read(fd, 1000);
            s.close(fd);
        };
        fires("temp-leak", parts("0600", named, reads));
        let mut s = Scenario::new();
        for i in 0..30 {
            let fd = s.open(&format!("/data/tmp/{i}.gray"), "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 1000);
            s.close(fd);
        }
        s.ends(0);
        fires("temp-leak", s);
    }

    /// createTempFile of Java, whose mode is the default one.
    #[test]
    fn random_numbers_in_names_count_if_they_are_read_again() {
        let numbered = |i: i32| format!("/data/work/page{}.raw", 10_993_973_121_936_000_000_u64 + i.unsigned_abs() as u64);
        let reads = |s: &mut Scenario, path: &str| {
            let fd = s.open(path, "O_RDONLY");
            s.read(fd, 1000);
            s.close(fd);
        };
        fires("temp-leak", parts("0666", numbered, reads));
        silent("temp-leak", parts("0666", numbered, |_, _| {}));
        silent("temp-leak", parts("0666", |i| format!("/data/work/page{i}.raw"), reads));
    }

    /// The names of mkstemp, and of Ruby's Tempfile.
    #[test]
    fn random_parts_of_names_count_of_private_files() {
        fn random(i: i32, digits: usize) -> String {
            const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
            let mut random = fathom_testkit::Random::new(i.unsigned_abs().into());
            (0..digits).map(|_| char::from(DIGITS[random.below(62) as usize])).collect()
        }
        let labels = |i: i32| format!("/data/spool/label20261130-4711-{}", random(i, 5 + i.unsigned_abs() as usize % 3));
        fires("temp-leak", parts("0600", labels, |_, _| {}));
        fires("temp-leak", parts("0600", |i| format!("/data/spool/label{}.pdf", random(i, 6)), |_, _| {}));
        silent("temp-leak", parts("0644", labels, |_, _| {}));
        silent("temp-leak", parts("0600", labels, |s, path| s.unlink(path)));
        // Hashes of their contents, and numbers.
        silent("temp-leak", parts("0600", |i| format!("/data/objects/{:040x}", i.unsigned_abs() as u128 * 987_654_321_987_654_321), |_, _| {}));
        silent("temp-leak", parts("0600", |i| format!("/data/queue/d{i:05}-001"), |_, _| {}));
    }

    #[test]
    fn silent_while_another_process_has_them() {
        let reads = |s: &mut Scenario, path: &str| {
            s.process(200);
            s.open(path, "O_RDONLY");
            s.process(100);
        };
        silent("temp-leak", parts("0600", named, reads));
    }

    #[test]
    fn silent_on_files_that_are_meant_to_stay() {
        // As an archive is unpacked.
        silent("temp-leak", parts("0644", |i| format!("/data/templates/{i}.html"), |_, _| {}));
        silent("temp-leak", parts("0600", |i| format!("/data/keys/{i}.pem"), |_, _| {}));
    }

    #[test]
    fn silent_while_the_process_may_need_them() {
        let mut s = Scenario::new();
        for i in 0..150 {
            let fd = s.open_mode(&named(i), "O_RDWR|O_CREAT|O_EXCL", "0600");
            s.close(fd);
        }
        silent("temp-leak", s);
    }
}
