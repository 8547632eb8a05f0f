//! What belongs together on the two sides: files by path, processes by name.

use std::collections::{BTreeMap, BTreeSet};

use crate::names;
use crate::profile::Profile;

/// What calls without a known file are listed under.
pub(crate) const NO_FILE: &str = "(no known file)";
/// What the recorded command is called where its name differs between the sides.
pub(crate) const COMMAND: &str = "(the command)";
/// Bytes of a thread's name that the kernel keeps.
const COMM_BYTES: usize = 15;

/// The name under which each file is compared.
///
/// A path that both sides have is the same file. The others are compared by their
/// pattern, which is shown where it stands for more than one.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    keys: BTreeMap<String, String>,
    /// By name: paths that it stands for, before and after.
    members: BTreeMap<String, [usize; 2]>,
    /// Names of the recorded commands, of either side.
    commands: BTreeSet<String>,
}

impl Matcher {
    pub fn new(before: &[Profile], after: &[Profile]) -> Self {
        let paths = |side: &[Profile]| -> BTreeSet<String> {
            let operations = side.iter().flat_map(|p| &p.operations);
            let found = side.iter().flat_map(|p| p.findings.iter().flatten());
            let operations = operations.filter_map(|o| o.path.clone());
            operations
                .chain(found.filter_map(|f| f.path.clone()))
                .collect()
        };
        let (b, a) = (paths(before), paths(after));
        let mut groups: BTreeMap<String, [Vec<&String>; 2]> = BTreeMap::new();
        let mut matcher = Self::default();
        for path in b.intersection(&a) {
            matcher.keys.insert(path.clone(), path.clone());
        }
        for (side, (own, other)) in [(&b, &a), (&a, &b)].into_iter().enumerate() {
            for path in own.difference(other) {
                let group = groups.entry(names::pattern(path)).or_default();
                if let Some(list) = group.get_mut(side) {
                    list.push(path);
                }
            }
        }
        for (pattern, group) in groups {
            let [before, after] = &group;
            let all = || before.iter().chain(after);
            let name = match (before.len(), after.len()) {
                (1, 0) | (0, 1) => all().next().map_or(pattern, |p| (*p).clone()),
                _ => {
                    // One that is called like the pattern itself is a file of its own.
                    let name = match b.contains(&pattern) && a.contains(&pattern) {
                        true => format!("{pattern} (others)"),
                        false => pattern,
                    };
                    matcher
                        .members
                        .insert(name.clone(), [before.len(), after.len()]);
                    name
                }
            };
            for path in all() {
                matcher.keys.insert((*path).clone(), name.clone());
            }
        }
        matcher.commands = commands(before, after);
        matcher
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
            false => names::pattern(comm),
        }
    }
}

/// Names of the commands, if those of the two sides have none in common: `app-old` and
/// `app-new` are two builds of one program then.
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

/// What the kernel calls a command: the beginning of its file's name.
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
    use crate::profile::Operation;

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

    #[test]
    fn paths_of_both_sides_are_compared_as_they_are() {
        let before = side("a", &["/data/1", "/data/2", "/tmp/tmp.aaaaaa", "/old"]);
        let after = side("a", &["/data/1", "/data/3", "/data/4", "/tmp/tmp.bbbbbb"]);
        let matcher = Matcher::new(&before, &after);
        let name = |path| matcher.file(Some(path));
        assert_eq!(name("/data/1"), "/data/1");
        for path in ["/data/2", "/data/3", "/data/4"] {
            assert_eq!(name(path), "/data/#");
        }
        assert_eq!(matcher.members("/data/#"), Some([1, 2]));
        assert_eq!(name("/tmp/tmp.aaaaaa"), "/tmp/tmp.*");
        assert_eq!(name("/tmp/tmp.bbbbbb"), "/tmp/tmp.*");
        assert_eq!(name("/old"), "/old");
        assert_eq!(matcher.members("/old"), None);
        assert_eq!(matcher.file(None), NO_FILE);
        assert_eq!(matcher.process("a"), "a");
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
}
