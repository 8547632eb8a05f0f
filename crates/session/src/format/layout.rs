//! Names in the directory of a session.

use std::fmt;

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
/// Files that fathom writes next to the tables' folders.
pub(crate) const TOP_FILES: [&str; 10] = [
    META_FILE,
    META_TEMPORARY,
    LOCK_FILE,
    RESERVE_FILE,
    fathom_pyramid::SYSCALLS.file,
    fathom_pyramid::SLICES.file,
    fathom_pyramid::WAITS.file,
    PYRAMID_TEMPORARY,
    FINDINGS_FILE,
    FINDINGS_TEMPORARY,
];

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
