//! The sources of pyramids: tables and the dimensions of their sums.

/// A table with a pyramid.
#[derive(Debug)]
pub struct Source {
    pub table: &'static str,
    /// Name of the pyramid's file, next to the tables.
    pub file: &'static str,
    /// Column of the time, nanoseconds.
    pub time: &'static str,
    /// Column of the bytes moved, where the table has one; null counts as 0.
    pub bytes: Option<&'static str>,
    /// Column that is null unless the row failed, where the table has one.
    pub error: Option<&'static str>,
    /// Rows after which a segment is closed at the end of a part. Fewer make buckets narrower
    /// and the file larger.
    pub segment_rows: u64,
    /// By what it is summed. The number of one is part of the file's format:
    /// new ones go to the end.
    pub dimensions: &'static [Dimension],
}

/// One way of telling rows apart.
#[derive(Debug)]
pub struct Dimension {
    pub name: &'static str,
    /// The column of the key.
    pub keys: Keys,
    /// Column of the duration that is added up, nanoseconds; null counts as 0.
    pub duration: &'static str,
}

/// The columns of a key.
#[derive(Debug)]
pub enum Keys {
    Text(&'static str),
    /// A text column in rows in which a column of 32-bit numbers is 0, else null.
    TextAtZero(&'static str, &'static str),
    /// A column of 64-bit numbers.
    Int(&'static str),
    /// Two columns of 32-bit numbers.
    Pair(&'static str, &'static str),
}

pub static SOURCES: [&Source; 3] = [&SYSCALLS, &SLICES, &WAITS];

/// System calls. Classes follow from calls, processes from threads.
pub static SYSCALLS: Source = Source {
    table: "syscalls",
    file: "syscalls.pyramid",
    time: "ts_ns",
    bytes: Some("bytes"),
    error: Some("errno"),
    segment_rows: 1 << 18,
    dimensions: &[
        Dimension {
            name: "syscall",
            keys: Keys::Text("syscall"),
            duration: "dur_ns",
        },
        Dimension {
            name: "thread",
            keys: Keys::Pair("pid", "tid"),
            duration: "dur_ns",
        },
        Dimension {
            name: "file",
            keys: Keys::Int("file_id"),
            duration: "dur_ns",
        },
    ],
};

/// Visits of layers. A call without observed layers has no visits: the time of such calls is the
/// total time of all calls minus the durations of calls with visits.
pub static SLICES: Source = Source {
    table: "slices",
    file: "slices.pyramid",
    time: "ts_ns",
    bytes: None,
    error: None,
    segment_rows: 1 << 17,
    dimensions: &[
        Dimension {
            name: "layer",
            keys: Keys::Text("layer"),
            duration: "self_ns",
        },
        Dimension {
            name: "request",
            keys: Keys::TextAtZero("layer", "depth"),
            duration: "dur_ns",
        },
    ],
};

/// Time of threads off the CPU, by what they waited for. The time from the wake-up on, in which a
/// thread could have run, is part of it: [`WAITS_QUEUE`] separates the two.
pub static WAITS: Source = Source {
    table: "waits",
    file: "waits.pyramid",
    time: "ts_ns",
    bytes: None,
    error: None,
    segment_rows: 1 << 17,
    dimensions: &[
        Dimension {
            name: "reason",
            keys: Keys::Text("reason"),
            duration: "dur_ns",
        },
        Dimension {
            name: "queue",
            keys: Keys::Text("reason"),
            duration: "run_queue_ns",
        },
    ],
};

/// Places of the dimensions of [`WAITS`].
pub const WAITS_REASON: usize = 0;
pub const WAITS_QUEUE: usize = 1;
