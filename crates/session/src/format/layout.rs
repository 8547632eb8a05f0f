//! Names in the directory of a session.

use std::fmt;

use fathom_pyramid::SOURCES;

/// The file that holds [`fathom_model::meta::SessionMeta`].
pub(crate) const META_FILE: &str = "session.json";
/// Where it is prepared.
pub(crate) const META_TEMPORARY: &str = "session.json.tmp";
/// Locked by the recorder as long as it lives.
pub(crate) const LOCK_FILE: &str = ".lock";
/// Room on disk that is kept for the end.
pub(crate) const RESERVE_FILE: &str = ".reserve";
/// Temporary file for rebuilding the pyramid of a table.
pub(crate) const PYRAMID_TEMPORARY: &str = "pyramid.tmp";
/// The findings, during a recording the ones so far; and the temporary file for them.
pub(crate) const FINDINGS_FILE: &str = "findings.json";
pub(crate) const FINDINGS_TEMPORARY: &str = "findings.json.tmp";
/// Files that fathom writes next to the tables' folders, besides the pyramids.
const TOP_FILES: [&str; 7] = [
    META_FILE,
    META_TEMPORARY,
    LOCK_FILE,
    RESERVE_FILE,
    PYRAMID_TEMPORARY,
    FINDINGS_FILE,
    FINDINGS_TEMPORARY,
];

/// Folder of the tables that the user added.
pub(crate) const OWN_FOLDER: &str = "own";
/// Longest name of such a table.
const OWN_NAME: usize = 63;

const PREFIX: &str = "part-";
const SUFFIX: &str = ".parquet";
/// Ends the name of a part that is being written, so that `*.parquet` does not
/// match it.
const TEMPORARY: &str = ".tmp";

/// The parts `first` to `last` of a table: one part as it was written, or several merged ones. A
/// part whose range is inside another's is a source of that merged part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartRange {
    /// Number of the first part.
    pub first: u64,
    /// Number of the last part.
    pub last: u64,
}

impl PartRange {
    pub(crate) fn single(number: u64) -> Self {
        Self {
            first: number,
            last: number,
        }
    }

    /// Whether `other` is one of the parts that this one was merged from.
    pub(crate) fn contains(&self, other: &PartRange) -> bool {
        self != other && self.first <= other.first && other.last <= self.last
    }

    /// Name of the file while it is being written.
    pub(crate) fn temporary_name(&self) -> String {
        format!("{self}{TEMPORARY}")
    }

    /// The range that a file's name stands for.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let range = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(range)?, number(range)?),
        };
        let range = Self { first, last };
        (first <= last && range.to_string() == name).then_some(range)
    }
}

/// Name of the file.
impl fmt::Display for PartRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:08}", self.first)?;
        if self.last != self.first {
            write!(f, "-{:08}", self.last)?;
        }
        f.write_str(SUFFIX)
    }
}

/// A part of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartInfo {
    /// Its place in the order of writing.
    pub range: PartRange,
    /// Rows in it.
    pub rows: u64,
    /// Size of the file.
    pub bytes: u64,
}

/// Whether fathom gives this name to a file next to the tables' folders.
pub(crate) fn is_top_file(name: &str) -> bool {
    TOP_FILES.contains(&name) || SOURCES.iter().any(|source| source.file == name)
}

/// Whether fathom gives this name to a file in a table's folder.
pub(crate) fn is_part_file(name: &str) -> bool {
    PartRange::parse(name.strip_suffix(TEMPORARY).unwrap_or(name)).is_some()
}

/// Whether this is the name of a part that was never finished.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.strip_suffix(TEMPORARY)
        .and_then(PartRange::parse)
        .is_some()
}

/// Whether a table that the user adds may have this name: lowercase letters, digits, and _, no digit
/// first.
pub fn is_own_name(name: &str) -> bool {
    let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    (1..=OWN_NAME).contains(&name.len())
        && name.bytes().all(word)
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// The file of a table that the user added; `xxh64` is its checksum.
pub(crate) fn own_file(name: &str, xxh64: u64) -> String {
    format!("{name}-{xxh64:016x}{SUFFIX}")
}

/// The name and the checksum in the name of such a file.
pub(crate) fn parse_own_file(file: &str) -> Option<(&str, u64)> {
    let (name, digits) = file.strip_suffix(SUFFIX)?.split_once('-')?;
    let xxh64 = u64::from_str_radix(digits, 16).ok()?;
    (is_own_name(name) && own_file(name, xxh64) == file).then_some((name, xxh64))
}

/// The file in which the table is prepared.
pub(crate) fn own_temporary(name: &str) -> String {
    format!("{name}{SUFFIX}{TEMPORARY}")
}

/// Whether fathom gives this name to a file in the folder of these tables.
pub(crate) fn is_own_file(file: &str) -> bool {
    let whole = file.strip_suffix(TEMPORARY).unwrap_or(file);
    let prepared = whole.strip_suffix(SUFFIX).filter(|_| whole != file);
    parse_own_file(whole).is_some() || prepared.is_some_and(is_own_name)
}

fn number(digits: &str) -> Option<u64> {
    digits
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_own_tables() {
        let file = own_file("orders_2", 0xab);
        assert_eq!(file, "orders_2-00000000000000ab.parquet");
        assert_eq!(parse_own_file(&file), Some(("orders_2", 0xab)));
        assert!(is_own_file(&file) && is_own_file(&own_temporary("orders_2")));
        for foreign in [
            "orders-ab.parquet",
            "orders-00000000000000AB.parquet",
            "orders-+0000000000000ab.parquet",
            "Orders-00000000000000ab.parquet",
            "../x-00000000000000ab.parquet",
            "orders.parquet",
            "-00000000000000ab.parquet",
        ] {
            assert!(!is_own_file(foreign), "{foreign}");
        }
        for name in ["", "2x", "a b", "a-b", "a/b", "ä", "A", &"x".repeat(64)] {
            assert!(!is_own_name(name), "{name}");
        }
        assert!(is_own_name("_x2") && is_own_name(&"x".repeat(63)));
    }

    #[test]
    fn names_and_ranges() {
        let merged = PartRange { first: 1, last: 64 };
        assert_eq!(merged.to_string(), "part-00000001-00000064.parquet");
        assert_eq!(
            PartRange::parse("part-00000001-00000064.parquet"),
            Some(merged)
        );
        assert_eq!(PartRange::single(7).to_string(), "part-00000007.parquet");
        assert_eq!(
            PartRange::parse("part-123456789.parquet"),
            Some(PartRange::single(123456789))
        );
        for foreign in [
            "part-1.parquet",
            "part-00000001.parquet.tmp",
            "part-00000002-00000001.parquet",
            "part-+0000001.parquet",
            "part-00000001-00000001.parquet",
            "part-.parquet",
            "x.parquet",
        ] {
            assert_eq!(PartRange::parse(foreign), None, "{foreign}");
        }
        assert!(
            is_top_file("waits.pyramid") && is_top_file(META_FILE) && !is_top_file("x.pyramid")
        );
        assert!(is_part_file("part-00000001.parquet.tmp"));
        assert!(is_temporary("part-00000001.parquet.tmp"));
        assert!(!is_temporary("part-00000001.parquet"));
        assert!(merged.contains(&PartRange::single(64)));
        assert!(!merged.contains(&merged));
        assert!(!merged.contains(&PartRange {
            first: 60,
            last: 65
        }));
    }
}
