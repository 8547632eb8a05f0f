//! Names in a lake: partitions as Hive has them.

use chrono::DateTime;
use fathom_model::meta::SessionMeta;
use fathom_session::PartRange;
use object_store::path::Path;

/// Table with a row per session.
pub const SESSIONS: &str = "sessions";
/// Table with a row per object of a session.
pub const OBJECTS: &str = "objects";
/// Table with a row per finding of the diagnosis.
pub const FINDINGS: &str = "findings";
/// Directory of the commit markers. Engines skip names with this beginning.
pub const MARKERS: &str = "_sessions";
/// Name of a commit marker.
pub const MARKER: &str = "session.json";
/// The value of a partition that is empty, as Hive writes it: engines read null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// Characters of a host's name in a path: Linux allows so many.
const MAX_HOST: usize = 64;
/// Digits of the checksum in the name of an object.
const DIGITS: usize = 16;
const PREFIX: &str = "part-";
const SUFFIX: &str = ".parquet";

/// The partition of a session: `date=.../host=.../session=...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition(String);

impl Partition {
    /// The partition of a session.
    pub fn of(meta: &SessionMeta) -> Self {
        let start = DateTime::from_timestamp_nanos(meta.clock.start_realtime_ns);
        let host: String = meta.host.name.chars().take(MAX_HOST).collect();
        Self(format!(
            "date={}/host={}/session={}",
            start.format("%Y-%m-%d"),
            value(&host),
            value(&meta.id)
        ))
    }

    /// Its directory below `table`.
    pub fn dir(&self, table: &str) -> String {
        format!("{table}/{}", self.0)
    }
}

/// A value of a partition: all but letters, digits, and `.`, `_`, `-` is encoded by percent, so that no
/// name of a host leaves its directory.
fn value(text: &str) -> String {
    if text.is_empty() {
        return NULL.to_owned();
    }
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match plain(&byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Name of the object with the parts `range` of a table: by place and contents, so that an object of
/// this name is this object.
pub fn part_name(range: PartRange, sha256: &str) -> String {
    let name = range.to_string();
    let name = name.strip_suffix(SUFFIX).unwrap_or(&name);
    format!("{name}.{}{SUFFIX}", digits(sha256))
}

/// The same of a table that shipping makes, which has one object.
pub fn only_name(sha256: &str) -> String {
    format!("{PREFIX}00000000.{}{SUFFIX}", digits(sha256))
}

fn digits(sha256: &str) -> &str {
    sha256.get(..DIGITS).unwrap_or(sha256)
}

/// Whether shipping gives an object such a name.
pub fn is_part_name(name: &str) -> bool {
    let middle = name
        .strip_prefix(PREFIX)
        .and_then(|n| n.strip_suffix(SUFFIX));
    let known = |c: char| c.is_ascii_hexdigit() || c == '-' || c == '.';
    middle.is_some_and(|middle| middle.chars().all(known))
}

/// A path below the prefix of a destination.
pub fn below(prefix: &Path, relative: &str) -> Result<Path, object_store::path::Error> {
    match prefix.as_ref() {
        "" => Path::parse(relative),
        prefix => Path::parse(format!("{prefix}/{relative}")),
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::tables::TABLES;

    use super::*;

    fn partition(host: &str) -> String {
        let mut meta = fathom_testkit::meta();
        meta.id = "0123456789abcdef0123456789abcdef".into();
        meta.host.name = host.into();
        meta.clock.start_realtime_ns = 1_735_689_599_999_999_999;
        Partition::of(&meta).dir("syscalls")
    }

    #[test]
    fn hosts_stay_in_their_directory() {
        let place = |host: &str| {
            format!("syscalls/date=2024-12-31/host={host}/session=0123456789abcdef0123456789abcdef")
        };
        assert_eq!(partition("db-1.example.org"), place("db-1.example.org"));
        assert_eq!(partition("../../etc"), place("..%2F..%2Fetc"));
        assert_eq!(
            partition("a=b/c%2F #1\n"),
            place("a%3Db%2Fc%252F%20%231%0A")
        );
        assert_eq!(partition("ü"), place("%C3%BC"));
        assert_eq!(partition(""), place("__HIVE_DEFAULT_PARTITION__"));
        assert_eq!(partition(&"ü".repeat(99)), place(&"%C3%BC".repeat(64)));
        for host in ["..", "a/b", "%", "\u{0}", "#1", "*"] {
            let path = below(&Path::from("lake"), &partition(host)).unwrap();
            assert_eq!(path.parts().count(), 5, "{path}");
        }
    }

    #[test]
    fn names_of_objects() {
        let hash = "00112233445566778899aabbccddeeff";
        let range = |first, last| PartRange { first, last };
        assert_eq!(
            part_name(range(0, 64), hash),
            "part-00000000-00000064.0011223344556677.parquet"
        );
        assert_eq!(
            part_name(range(7, 7), hash),
            "part-00000007.0011223344556677.parquet"
        );
        assert!(is_part_name(&part_name(range(0, 64), hash)) && is_part_name(&only_name(hash)));
        for foreign in [
            "session.json",
            "part-1.parquet#1",
            "part-x/y.parquet",
            "other.parquet",
        ] {
            assert!(!is_part_name(foreign), "{foreign}");
        }
    }

    /// A column with the name of a partition would hide it, or be hidden by it.
    #[test]
    fn partitions_are_no_columns_and_made_tables_are_no_tables() {
        for table in TABLES {
            assert!(![SESSIONS, OBJECTS, FINDINGS, MARKERS].contains(&table.name));
            for column in table.columns {
                let name = column.stored_name();
                assert!(
                    !["date", "host", "session"].contains(&name),
                    "{}",
                    table.name
                );
            }
        }
    }
}
