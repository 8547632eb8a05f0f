//! Library calls: sums by function, and one call with its callers and its system calls.

use super::{Kind, Question};

const CALL: (&str, Kind) = ("call", Kind::Number);

pub(super) const QUESTIONS: &[Question] = &[
    Question {
        name: "library-functions",
        about: "the functions whose calls were recorded, the 500 with the most time in the whole recording",
        takes: &[],
        rows: 500,
        sql: || {
            "SELECT * FROM by_user_call ORDER BY total_ns DESC NULLS FIRST, calls DESC, function, library".to_owned()
        },
    },
    Question {
        name: "library-call",
        about: "library call `call` and those around it, the innermost first, at most 16",
        takes: &[CALL],
        rows: 16,
        sql: || {
            "WITH RECURSIVE chain AS (
    SELECT * FROM user_calls WHERE user_call = $call
    UNION ALL
    SELECT u.* FROM user_calls AS u JOIN chain AS c ON u.user_call = c.parent AND u.depth < c.depth
)
SELECT user_call, function, library, ts_ns - $start AS t, dur_ns AS dur, ret::VARCHAR AS ret, failed, size, bytes,
    coalesce(path, path_arg) AS path, depth
FROM chain LEFT JOIN (SELECT file_id, path FROM files) USING (file_id)
ORDER BY depth DESC"
                .to_owned()
        },
    },
    Question {
        name: "library-call-made",
        about: "the system calls that library call `call` made itself, the first 100; `calls` and `total_ns` are of all",
        takes: &[CALL],
        rows: 100,
        sql: || {
            "SELECT rid, ts_ns - $start AS t, dur_ns AS dur, syscall, errno, bytes, coalesce(path, path_arg) AS path,
    count(*) OVER () AS calls, sum(dur_ns) OVER () AS total_ns
FROM syscalls WHERE user_call = $call ORDER BY ts_ns, rid LIMIT 100"
                .to_owned()
        },
    },
];
