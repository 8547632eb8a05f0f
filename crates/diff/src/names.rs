//! Names that differ from run to run though they mean the same: temporary files,
//! process ids, numbers.

/// Placeholders for random parts and for numbers.
const RANDOM: char = '*';
const NUMBER: char = '#';

/// Directories whose files are temporary: there a random part need not look it.
const TEMPORARY: [&str; 5] = ["/tmp/", "/var/tmp/", "/dev/shm/", "/run/", "/var/run/"];

/// The pattern of a path component, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pattern {
    /// The component with its numbers and random parts replaced: `tmp*`, `part-#.log`.
    pub text: String,
    /// Something looks drawn at random: two files that are called the same are one then,
    /// which of numbers cannot be said.
    pub drawn: bool,
}

/// A name with its numbers and random parts replaced: `worker-#`.
pub(crate) fn pattern(name: &str) -> String {
    component(name, false).text
}

/// Whether a path is in a directory whose files are temporary.
pub(crate) fn is_temporary(path: &str) -> bool {
    TEMPORARY.iter().any(|dir| path.starts_with(dir))
}

/// The pattern of a path component.
pub(crate) fn component(name: &str, temporary: bool) -> Pattern {
    if temporary && is_drawn(name) {
        return Pattern {
            text: RANDOM.to_string(),
            drawn: true,
        };
    }
    let mut drawn = false;
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = uuid(rest) {
            drawn = true;
            out.push(RANDOM);
            rest = after;
            continue;
        }
        let word = rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(word.max(first.len_utf8()));
        // Python's tempfile may generate underscores.
        match python(rest) {
            Some(after) if out.is_empty() => {
                drawn = true;
                out.push_str("tmp*");
                rest = after;
            }
            _ if is_hex(word) && !(temporary && is_gcc(word)) => {
                out.push(RANDOM);
                rest = after;
            }
            _ => {
                let separated = name.len() > rest.len();
                let word = word_pattern(word, temporary, separated);
                drawn |= word.contains(RANDOM) && !rest.starts_with(RANDOM);
                out.push_str(&word);
                rest = after;
            }
        }
    }
    Pattern { text: out, drawn }
}

/// Eight hexadecimal digits or more: a hash, an address, or what is counted that way. As
/// only some have letters, these do not matter.
fn is_hex(word: &str) -> bool {
    let digits = word.bytes().any(|b| b.is_ascii_digit());
    word.len() >= 8 && digits && word.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Eight small letters, digits or underscores: what Python draws where it tries a directory.
fn is_drawn(name: &str) -> bool {
    let drawn = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    name.len() == 8 && name.bytes().all(drawn) && !is_made_of_words(name)
}

/// `16397_vm`, `data_dir`: words and numbers, each for itself.
fn is_made_of_words(name: &str) -> bool {
    let word = |part: &str| {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        !part.is_empty() && (digits == 0 || digits == part.len())
    };
    name.contains('_') && name.split('_').all(word)
}

/// `tmp` and eight letters, digits or underscores, up to the end or a dot.
fn python(name: &str) -> Option<&str> {
    let random = name.strip_prefix("tmp")?;
    let (random, after) = (random.get(..8)?, random.get(8..)?);
    let drawn = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let ends = after.is_empty() || after.starts_with('.');
    (ends && random.bytes().all(drawn)).then_some(after)
}

fn uuid(text: &str) -> Option<&str> {
    let (id, after) = (text.get(..36)?, text.get(36..)?);
    let fits = id.bytes().enumerate().all(|(i, b)| match i {
        8 | 13 | 18 | 23 => b == b'-',
        _ => b.is_ascii_hexdigit(),
    });
    fits.then_some(after)
}

/// A run of letters and digits; `separated` if a separator precedes it.
fn word_pattern(word: &str, temporary: bool, separated: bool) -> String {
    let has = |test: fn(&u8) -> bool| word.bytes().any(|b| test(&b));
    let (digits, lower) = (has(u8::is_ascii_digit), has(u8::is_ascii_lowercase));
    let upper = has(u8::is_ascii_uppercase);
    let letters = lower || upper;
    if temporary && is_gcc(word) {
        return format!("cc{RANDOM}");
    }
    // mkstemp and its variants put six letters and digits after a separator, gcc after `cc`.
    // Anywhere else they must look random to match.
    let looks_drawn = (digits && letters) || (lower && upper && !capitalised(word));
    if separated && word.len() == 6 && (temporary || looks_drawn) && letters {
        return RANDOM.to_string();
    }
    if temporary && letters && word.len() >= 6 && looks_drawn {
        return RANDOM.to_string();
    }
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with(NUMBER) {
            out.push(NUMBER);
        }
    }
    out
}

/// gcc's names of files: `cc` and six letters and digits.
fn is_gcc(word: &str) -> bool {
    word.strip_prefix("cc")
        .is_some_and(|drawn| drawn.len() == 6)
}

/// `Backup`: a word, nothing drawn.
fn capitalised(word: &str) -> bool {
    word.bytes().skip(1).all(|b| b.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::{component, is_temporary};

    fn pattern(path: &str) -> String {
        let components = path.split('/');
        let patterns = components.map(|name| component(name, is_temporary(path)).text);
        patterns.collect::<Vec<_>>().join("/")
    }

    #[test]
    fn what_differs_from_run_to_run_is_replaced() {
        for (path, expected) in [
            ("/proc/1234/stat", "/proc/#/stat"),
            ("/proc/1234/task/77/comm", "/proc/#/task/#/comm"),
            ("/tmp/tmpk3j_h4lx", "/tmp/tmp*"),
            ("/tmp/tmpk3jah4lx.txt", "/tmp/tmp*.txt"),
            ("/tmp/tmp.aB3dEfGh12", "/tmp/tmp.*"),
            ("/tmp/ccAbC3ef.o", "/tmp/cc*.o"),
            ("/srv/data.XyZ12a", "/srv/data.*"),
            ("/tmp/out.abcdef", "/tmp/out.*"),
            ("/tmp/rf799c_e", "/tmp/*"),
            ("/data/000012.sst", "/data/#.sst"),
            ("/var/tmp/base/16397_vm", "/var/tmp/base/#_vm"),
            ("/data/part-7-of-12", "/data/part-#-of-#"),
            ("/pg_wal/00000001000000000000000C", "/pg_wal/*"),
            ("/pg_wal/000000010000000000000012", "/pg_wal/*"),
            ("/o/6f9619ff-8b86-d011-b42d-00cf4fc964ff.json", "/o/*.json"),
            (
                "/git/objects/ab/9daeafb9864cf43055ae93beb0afd6c7d144bf",
                "/git/objects/ab/*",
            ),
        ] {
            assert_eq!(pattern(path), expected, "{path}");
        }
    }

    #[test]
    fn names_stay() {
        for path in [
            "",
            "/",
            "/etc/passwd",
            "/srv/config.backup",
            "/srv/Backup.Config",
            "/srv/\u{e9}t\u{e9}/\u{4e16}\u{754c}",
            "relative/file.txt",
            "/x/tmpfile",
        ] {
            assert_eq!(pattern(path), path);
        }
    }
}
