//! What a pyramid is made of: a table and the dimensions that it is summed by.

/// A table with a pyramid.
#[derive(Debug)]
pub struct Source {
    /// Name of the table.
    pub table: &'static str,
    /// Column of the time, nanoseconds.
    pub time: &'static str,
    /// Column of the duration, nanoseconds; null counts as 0.
    pub duration: &'static str,
    /// Column of the bytes moved; null counts as 0.
    pub bytes: &'static str,
    /// Column that is null unless the row failed.
    pub error: &'static str,
    /// By what it is summed. The number of one is part of the file's format:
    /// new ones go to the end.
    pub dimensions: &'static [Dimension],
}

/// One way of telling rows apart.
#[derive(Debug)]
pub struct Dimension {
    /// Name, for people.
    pub name: &'static str,
    /// Where the key stands.
    pub keys: Keys,
}

/// The columns of a key.
#[derive(Debug)]
pub enum Keys {
    /// A text column.
    Text(&'static str),
    /// A column of 64-bit numbers.
    Int(&'static str),
    /// Two columns of 32-bit numbers.
    Pair(&'static str, &'static str),
}

/// System calls. Classes follow from calls, processes from threads.
pub static SYSCALLS: Source = Source {
    table: "syscalls",
    time: "ts_ns",
    duration: "dur_ns",
    bytes: "bytes",
    error: "errno",
    dimensions: &[
        Dimension {
            name: "syscall",
            keys: Keys::Text("syscall"),
        },
        Dimension {
            name: "thread",
            keys: Keys::Pair("pid", "tid"),
        },
        Dimension {
            name: "file",
            keys: Keys::Int("file_id"),
        },
    ],
};
