//! Which calls are recorded: `--syscalls`.

use fathom_model::kind::Kind;
use fathom_model::syscalls::{Api, Class, SYSCALLS, Syscall};

/// Calls to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Indexes into [`SYSCALLS`], ascending.
    pub calls: Vec<usize>,
    /// Also calls on sockets, pipes and anonymous inodes.
    pub all_file_types: bool,
}

/// A word of `--syscalls` that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--syscalls: no call or class named '{word}'{}; choose from storage, all, {}, or the names of \
     calls (`fathom doctor --syscalls` lists them)",
    .nearest.map_or_else(String::new, |n| format!(" (did you mean {n}?)")),
    Class::ALL.map(Class::name).join(", "),
)]
pub struct SelectionError {
    pub word: String,
    /// A known word that is close to it.
    pub nearest: Option<&'static str>,
}

impl Selection {
    /// Calls on files and directories only: the default. Excludes calls that usually do not concern
    /// files.
    pub fn storage() -> Self {
        Selection {
            calls: (0..SYSCALLS.len())
                .filter(|index| of_files(*index))
                .collect(),
            all_file_types: false,
        }
    }

    /// This selection and the calls that make, move, and close streams of bytes.
    #[must_use]
    pub fn with_streams(mut self) -> Self {
        let streams =
            (0..SYSCALLS.len()).filter(|index| SYSCALLS.get(*index).is_some_and(moves_streams));
        self.calls.extend(streams);
        self.calls.sort_unstable();
        self.calls.dedup();
        self
    }

    /// Parses words such as `storage`, `all`, `data`, `fsync`. Words add up;
    /// `all` also lets in calls on sockets, pipes and anonymous inodes, alone it
    /// stands for every call. `!word` takes calls away again.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Self, SelectionError> {
        let mut selected = [false; SYSCALLS.len()];
        let mut all_file_types = false;
        let words: Vec<&str> = words
            .iter()
            .flat_map(|word| word.as_ref().split(','))
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .collect();
        let narrows = |word: &&str| !word.starts_with('!') && !["all", "storage"].contains(word);
        if words.contains(&"storage") || !words.iter().any(narrows) {
            let all = words.contains(&"all");
            selected = std::array::from_fn(|index| all || of_files(index));
        }
        for word in words {
            let (word, on) = match word.strip_prefix('!') {
                Some(word) => (word, false),
                None => (word, true),
            };
            match word {
                "all" => all_file_types = on,
                "storage" => {}
                _ => {
                    let mut known = false;
                    for (index, call) in SYSCALLS.iter().enumerate() {
                        if call.class.name() == word || Syscall::index_of(word) == Some(index) {
                            selected[index] = on;
                            known = true;
                        }
                    }
                    if !known {
                        return Err(SelectionError {
                            word: word.to_string(),
                            nearest: nearest(word),
                        });
                    }
                }
            }
        }
        let calls = (0..SYSCALLS.len())
            .filter(|&index| selected[index])
            .collect();
        Ok(Selection {
            calls,
            all_file_types,
        })
    }
}

/// Whether requests and responses on stream sockets cannot be followed without a call.
fn moves_streams(call: &Syscall) -> bool {
    call.class == Class::Socket
        || call.moves_streams()
        || call.api != Api::Syscall && call.class == Class::Data
        || call.api == Api::Syscall && call.kind == Kind::Close
}

/// Whether a call is one of files, as far as it is not for its descriptor to tell.
fn of_files(index: usize) -> bool {
    SYSCALLS
        .get(index)
        .is_some_and(|call| !call.all_types || call.api != Api::Syscall)
}

/// The known word that shares the longest beginning with `word`, when that is
/// most of it.
fn nearest(word: &str) -> Option<&'static str> {
    let shared = |name: &str| {
        name.bytes()
            .zip(word.bytes())
            .take_while(|(a, b)| a == b)
            .count()
    };
    SYSCALLS
        .iter()
        .map(|call| call.name)
        .chain(Class::ALL.map(Class::name))
        .max_by_key(|name| shared(name))
        .filter(|name| shared(name) >= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Vec<&'static str> {
        Selection::parse(words)
            .unwrap()
            .calls
            .into_iter()
            .map(|i| SYSCALLS[i].name)
            .collect()
    }

    #[test]
    fn words_select_calls_and_classes() {
        assert_eq!(
            Selection::parse(&["storage"]).unwrap(),
            Selection::storage()
        );
        assert_eq!(Selection::parse::<&str>(&[]).unwrap(), Selection::storage());
        assert_eq!(names(&["fsync,fdatasync"]), ["fsync", "fdatasync"]);
        assert_eq!(names(&["fsync", "fdatasync"]), ["fsync", "fdatasync"]);
        assert!(!names(&["storage"]).contains(&"mprotect"));
        assert!(!names(&["!read"]).contains(&"mprotect"));
        assert!(names(&["memory"]).contains(&"mprotect"));
        assert!(names(&["all"]).contains(&"mprotect"));
        assert_eq!(names(&["mprotect"]), ["mprotect"]);
        assert!(names(&["data"]).contains(&"pread64"));
        assert!(!names(&["data"]).contains(&"openat"));
        assert!(!names(&["data", "!read"]).contains(&"read"));
        assert!(names(&["!read"]).contains(&"openat"));
        assert_eq!(names(&["fstatat"]), ["newfstatat"]);
        let both = names(&["socket,wait,storage"]);
        assert!(both.contains(&"connect") && both.contains(&"futex") && both.contains(&"read"));
        assert!(!both.contains(&"mprotect"));
        assert_eq!(names(&["all,!socket"]).len(), {
            let socket = SYSCALLS.iter().filter(|s| s.class == Class::Socket);
            SYSCALLS.len() - socket.count()
        });
        for word in ["storage", "data", "metadata", "async"] {
            assert!(!names(&[word]).contains(&"socket") && !names(&[word]).contains(&"pause"));
        }
        let all = Selection::parse(&["all"]).unwrap();
        assert!(all.all_file_types && all.calls.len() == SYSCALLS.len());
        let some = Selection::parse(&["all,read"]).unwrap();
        assert!(some.all_file_types && some.calls.len() == 1);
    }

    #[test]
    fn unknown_words_are_refused_with_a_hint() {
        let error = Selection::parse(&["fsink"]).unwrap_err();
        assert_eq!(error.word, "fsink");
        assert!(error.to_string().contains("no call or class named 'fsink'"));
        assert_eq!(
            Selection::parse(&["fdatasyn"]).unwrap_err().nearest,
            Some("fdatasync")
        );
    }
}
