//! Matches the two sides: files by path, processes by name.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::{self, Pattern};
use crate::profile::Profile;

/// Label for calls without a known file.
pub(crate) const NO_FILE: &str = "(no known file)";
/// Label for the recorded command if its name differs between the sides.
pub(crate) const COMMAND: &str = "(the command)";
/// Bytes of a thread's name that the kernel keeps.
const COMM_BYTES: usize = 15;

/// The name under which each file is compared.
///
/// The sides decide together which components of paths vary, from the root on: if the components of
/// one pattern are the same on both sides they stay; otherwise the pattern replaces all of them,
/// including common ones, because renumbered files share some numbers by chance.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    keys: BTreeMap<String, String>,
    /// By name: paths that it stands for, before and after.
    members: BTreeMap<String, [usize; 2]>,
    /// Names of the recorded commands, of either side.
    commands: BTreeSet<String>,
    /// By pattern: the name of processes, if only one has it; else empty.
    processes: BTreeMap<String, String>,
}

/// A path, and on which sides it is.
#[derive(Clone, Copy)]
struct Found<'a> {
    path: &'a str,
    /// Components below the directory in question; `None`: the directory itself.
    rest: Option<&'a str>,
    sides: [bool; 2],
}

impl Matcher {
    pub fn new(before: &[Profile], after: &[Profile]) -> Self {
        let mut paths: BTreeMap<&str, [bool; 2]> = BTreeMap::new();
        for (side, profiles) in [before, after].into_iter().enumerate() {
            let operations = profiles.iter().flat_map(|p| &p.operations);
            let found = profiles.iter().flat_map(|p| p.findings.iter().flatten());
            let operations = operations.filter_map(|o| o.path.as_deref());
            for path in operations.chain(found.filter_map(|f| f.path.as_deref())) {
                if let Some(there) = paths.entry(path).or_default().get_mut(side) {
                    *there = true;
                }
            }
        }
        let mut matcher = Self {
            commands: commands(before, after),
            ..Self::default()
        };
        for profile in before.iter().chain(after) {
            let found = profile.findings.iter().flatten();
            let found = found.filter_map(|finding| finding.comm.as_deref());
            for comm in profile
                .processes
                .iter()
                .map(|p| p.comm.as_str())
                .chain(found)
            {
                let name = matcher.processes.entry(names::pattern(comm));
                let name = name.or_insert_with(|| comm.to_owned());
                if name != comm {
                    name.clear();
                }
            }
        }
        let found = |(path, sides)| Found {
            path,
            rest: Some(path),
            sides,
        };
        let all: Vec<Found> = paths.into_iter().map(found).collect();
        // A directory at a time: its name, and what is below it.
        let mut places: Vec<(Option<String>, Vec<Found>)> = vec![(None, all)];
        while let Some((place, found)) = places.pop() {
            for (component, inside) in entries(&found) {
                let name = match &place {
                    Some(place) => format!("{place}/{component}"),
                    None => component,
                };
                let (deeper, here): (Vec<Found>, Vec<Found>) =
                    inside.into_iter().partition(|f| f.rest.is_some());
                matcher.add(&name, &here);
                match deeper.as_slice() {
                    [] => {}
                    // It has no counterpart: the rest of its name stays.
                    [only] => {
                        let name = format!("{name}/{}", only.rest.unwrap_or_default());
                        matcher.add(&name, &deeper);
                    }
                    _ => places.push((Some(name), deeper)),
                }
            }
        }
        matcher
    }

    /// Compares paths under a name.
    fn add(&mut self, name: &str, found: &[Found]) {
        for file in found {
            self.keys.insert(file.path.to_owned(), name.to_owned());
            if file.path != name {
                let members = self.members.entry(name.to_owned()).or_default();
                for (n, there) in members.iter_mut().zip(file.sides) {
                    *n += usize::from(there);
                }
            }
        }
    }

    /// The name under which a file is compared.
    pub fn file(&self, path: Option<&str>) -> String {
        let Some(path) = path else {
            return NO_FILE.to_owned();
        };
        self.keys.get(path).map_or(path, String::as_str).to_owned()
    }

    /// How many paths a name stands for, before and after, where it is a pattern.
    pub fn members(&self, name: &str) -> Option<[usize; 2]> {
        self.members.get(name).copied()
    }

    /// The name under which a process is compared.
    pub fn process(&self, comm: &str) -> String {
        match self.commands.contains(comm) {
            true => COMMAND.to_owned(),
            // Only names of which there are several differ from run to run.
            false => match self.processes.get(&names::pattern(comm)) {
                Some(name) if name == comm => comm.to_owned(),
                _ => names::pattern(comm),
            },
        }
    }
}

/// The entries of a directory, by the names under which they are compared.
fn entries<'a>(found: &[Found<'a>]) -> BTreeMap<String, Vec<Found<'a>>> {
    /// The tree below a component, and the sides that have it.
    #[derive(Default)]
    struct Component<'a> {
        below: Vec<Found<'a>>,
        sides: [bool; 2],
    }
    let mut kinds: BTreeMap<Pattern, BTreeMap<&str, Component>> = BTreeMap::new();
    for file in found {
        let Some(rest) = file.rest else { continue };
        let (name, rest) = match rest.split_once('/') {
            Some((name, rest)) => (name, Some(rest)),
            None => (rest, None),
        };
        let pattern = names::component(name, names::is_temporary(file.path));
        let component = kinds.entry(pattern).or_default().entry(name).or_default();
        component.below.push(Found { rest, ..*file });
        for (there, here) in component.sides.iter_mut().zip(file.sides) {
            *there |= here;
        }
    }
    let mut out: BTreeMap<String, Vec<Found>> = BTreeMap::new();
    for (pattern, components) in kinds {
        let both = |c: &Component| c.sides == [true, true];
        let stays = |c: &Component| pattern.drawn && both(c);
        let varying = components.values().filter(|c| !stays(c)).count();
        let same = varying < 2 || components.values().all(both);
        // One that is called like the pattern itself is a file of its own.
        let name = match components.contains_key(pattern.text.as_str()) {
            true => format!("{} (others)", pattern.text),
            false => pattern.text.clone(),
        };
        for (component, inside) in components {
            let name = match same || stays(&inside) || component == pattern.text {
                true => component,
                false => name.as_str(),
            };
            out.entry(name.to_owned()).or_default().extend(inside.below);
        }
    }
    out
}

/// Names of the commands, if the two sides have none in common: `app-old` and `app-new` are then
/// two builds of one program.
fn commands(before: &[Profile], after: &[Profile]) -> BTreeSet<String> {
    let of = |side: &[Profile]| -> BTreeSet<String> {
        side.iter().filter_map(|p| comm_of(&p.command)).collect()
    };
    let (b, a) = (of(before), of(after));
    let shared = b.intersection(&a).next().is_some();
    if shared || b.is_empty() || a.is_empty() {
        return BTreeSet::new();
    }
    b.union(&a).cloned().collect()
}

/// The kernel's name of a command: the beginning of its file's name.
fn comm_of(command: &[String]) -> Option<String> {
    let name = command.first()?.rsplit('/').next()?;
    let mut end = name.len().min(COMM_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Operation, Process};

    fn side(command: &str, paths: &[&str]) -> Vec<Profile> {
        let operation = |path: &&str| Operation {
            path: Some((*path).to_owned()),
            ..Operation::default()
        };
        vec![Profile {
            command: vec![command.to_owned()],
            operations: paths.iter().map(operation).collect(),
            ..Profile::default()
        }]
    }

    fn names(before: &[&str], after: &[&str]) -> Vec<String> {
        let matcher = Matcher::new(&side("a", before), &side("a", after));
        let all: BTreeSet<&&str> = before.iter().chain(after).collect();
        let name = |path: &&str| format!("{path} {}", matcher.file(Some(path)));
        all.into_iter().map(name).collect()
    }

    #[test]
    fn what_varies_is_replaced_on_both_sides() {
        let before = side("a", &["/data/1", "/data/2", "/tmp/tmp.aaaaaa", "/old"]);
        let after = side("a", &["/data/1", "/data/3", "/data/4", "/tmp/tmp.bbbbbb"]);
        let matcher = Matcher::new(&before, &after);
        let name = |path| matcher.file(Some(path));
        for path in ["/data/1", "/data/2", "/data/3", "/data/4"] {
            assert_eq!(name(path), "/data/#");
        }
        assert_eq!(matcher.members("/data/#"), Some([2, 3]));
        assert_eq!(name("/tmp/tmp.aaaaaa"), "/tmp/tmp.*");
        assert_eq!(name("/tmp/tmp.bbbbbb"), "/tmp/tmp.*");
        assert_eq!(name("/old"), "/old");
        assert_eq!(matcher.members("/old"), None);
        assert_eq!(matcher.file(None), NO_FILE);
        assert_eq!(matcher.process("a"), "a");
    }

    #[test]
    fn what_both_sides_have_alike_stays() {
        let same = [
            "/data/1",
            "/data/2",
            "/tmp/tmp.aaaaaa",
            "/var/tmp/postgres/x",
        ];
        for line in names(&same, &same) {
            let (path, name) = line.split_once(' ').unwrap();
            assert_eq!(path, name);
        }
    }

    /// A recreated data directory: most of its numbers are different, and it is chance which of
    /// them are hexadecimal with letters.
    #[test]
    fn a_data_directory_made_anew() {
        let before = [
            "/var/tmp/run.aB3dEf/postgres/base/5/16396",
            "/var/tmp/run.aB3dEf/postgres/base/5/16397_vm",
            "/var/tmp/run.aB3dEf/postgres/global/pg_control",
            "/var/tmp/run.aB3dEf/postgres/pg_wal/000000010000000000000009",
            "/var/tmp/run.aB3dEf/postgres/pg_wal/00000001000000000000000A",
        ];
        let after = [
            "/var/tmp/run.Xy9zAb/postgres/base/5/16396",
            "/var/tmp/run.Xy9zAb/postgres/base/5/16399",
            "/var/tmp/run.Xy9zAb/postgres/base/5/16401_vm",
            "/var/tmp/run.Xy9zAb/postgres/global/pg_control",
            "/var/tmp/run.Xy9zAb/postgres/pg_wal/00000001000000000000000A",
            "/var/tmp/run.Xy9zAb/postgres/pg_wal/00000001000000000000000B",
        ];
        let data = "/var/tmp/run.*/postgres";
        for line in names(&before, &after) {
            let (path, name) = line.split_once(' ').unwrap();
            let (_, file) = path.split_once("/postgres/").unwrap();
            let expected = match file.split('/').next().unwrap() {
                "base" if file.ends_with("_vm") => format!("{data}/base/5/#_vm"),
                "base" => format!("{data}/base/5/#"),
                "pg_wal" => format!("{data}/pg_wal/*"),
                _ => format!("{data}/global/pg_control"),
            };
            assert_eq!(name, expected);
        }
    }

    #[test]
    fn a_name_without_counterpart_stays() {
        assert_eq!(
            names(&["/d/a"], &["/d/a", "/d/b1/c2"]),
            ["/d/a /d/a", "/d/b1/c2 /d/b1/c2"]
        );
        // A random name that both sides have was not generated again.
        assert_eq!(
            names(
                &["/tmp/database", "/tmp/q1w2e3r4"],
                &["/tmp/database", "/tmp/z9y8x7w6"]
            ),
            [
                "/tmp/database /tmp/database",
                "/tmp/q1w2e3r4 /tmp/*",
                "/tmp/z9y8x7w6 /tmp/*"
            ]
        );
    }

    #[test]
    fn a_pattern_is_not_taken_for_a_file_of_that_name() {
        let before = side("a", &["/d/#", "/d/1"]);
        let after = side("a", &["/d/#", "/d/2"]);
        let matcher = Matcher::new(&before, &after);
        assert_eq!(matcher.file(Some("/d/#")), "/d/#");
        assert_eq!(matcher.file(Some("/d/1")), "/d/# (others)");
    }

    #[test]
    fn two_builds_of_a_program_are_one() {
        let matcher = Matcher::new(&side("/x/app-old", &[]), &side("./app-new-and-longer", &[]));
        assert_eq!(matcher.process("app-old"), COMMAND);
        assert_eq!(matcher.process("app-new-and-lon"), COMMAND);
        assert_eq!(matcher.process("worker-12"), "worker-#");
    }

    #[test]
    fn a_name_with_a_number_that_does_not_change_stays() {
        let named = |comms: &[&str]| {
            let mut side = side("/x/app", &[]);
            side[0].processes = comms
                .iter()
                .map(|comm| Process {
                    comm: (*comm).to_owned(),
                    ..Process::default()
                })
                .collect();
            side
        };
        let sides = [&["python3.11", "worker-1"], &["python3.11", "worker-2"]].map(|c| named(c));
        let matcher = Matcher::new(&sides[0], &sides[1]);
        assert_eq!(matcher.process("python3.11"), "python3.11");
        assert_eq!(matcher.process("worker-2"), "worker-#");
    }
}
