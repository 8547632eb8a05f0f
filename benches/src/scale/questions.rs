//! What the report and the views ask of the calls, and the same by hand.

/// Name, as asked of fathom, as written by hand. In the latter `FROM S` stands for the
/// parts of the calls, `JOIN F` for those of the files, and `QUANTILE` for the
/// percentiles that the views take. In both `AT` is a time in the middle,
/// `START` the first, `FILE` and `THREAD` the busiest file and thread.
pub const QUESTIONS: &[(&str, &str, &str)] = &[
    (
        "by_syscall",
        "SELECT * FROM by_syscall",
        "SELECT syscall, any_value(class), count(*), count(*) - count(ret), count(errno), sum(bytes), \
         sum(dur_ns) AS total, QUANTILE, max(dur_ns) FROM S GROUP BY syscall ORDER BY total DESC",
    ),
    (
        "by_class",
        "SELECT * FROM by_class",
        "SELECT class, count(*), count(*) - count(ret), count(errno), sum(bytes), \
         sum(dur_ns) AS total, QUANTILE, max(dur_ns) FROM S GROUP BY class ORDER BY total DESC",
    ),
    (
        "by_file, 20 files",
        "SELECT * FROM by_file LIMIT 20",
        "SELECT path, f.* FROM (SELECT file_id, count(*), count(errno), sum(bytes), \
         sum(bytes) FILTER (syscall IN ('read', 'pread64', 'readv', 'preadv', 'preadv2')), \
         sum(bytes) FILTER (syscall IN ('write', 'pwrite64', 'writev', 'pwritev', 'pwritev2')), \
         sum(dur_ns) AS total, QUANTILE, max(dur_ns) FROM S GROUP BY file_id \
         ORDER BY total DESC LIMIT 20) f LEFT JOIN F USING (file_id)",
    ),
    (
        "by_thread",
        "SELECT * FROM by_thread",
        "SELECT pid, tid, arg_max(comm, ts_ns), count(*), count(errno), sum(bytes), \
         sum(bytes) FILTER (syscall IN ('read', 'pread64', 'readv', 'preadv', 'preadv2')), \
         sum(bytes) FILTER (syscall IN ('write', 'pwrite64', 'writev', 'pwritev', 'pwritev2')), \
         sum(dur_ns) AS total, QUANTILE, max(dur_ns), min(ts_ns), max(ts_ns) FROM S GROUP BY pid, tid \
         ORDER BY total DESC",
    ),
    (
        "by_process",
        "SELECT * FROM by_process",
        "SELECT pid, count(DISTINCT tid), count(*), count(errno), sum(bytes), \
         sum(bytes) FILTER (syscall IN ('read', 'pread64', 'readv', 'preadv', 'preadv2')), \
         sum(bytes) FILTER (syscall IN ('write', 'pwrite64', 'writev', 'pwritev', 'pwritev2')), \
         sum(dur_ns) AS total, QUANTILE, max(dur_ns) FROM S GROUP BY pid ORDER BY total DESC",
    ),
    (
        "by_second",
        "SELECT * FROM by_second",
        "SELECT (ts_ns - START) // 1000000000 AS second, count(*), count(errno), sum(bytes), \
         sum(bytes) FILTER (syscall IN ('read', 'pread64', 'readv', 'preadv', 'preadv2')), \
         sum(bytes) FILTER (syscall IN ('write', 'pwrite64', 'writev', 'pwritev', 'pwritev2')), \
         sum(dur_ns), QUANTILE, max(dur_ns) FROM S GROUP BY 1 ORDER BY 1",
    ),
    (
        "by_error",
        "SELECT * FROM by_error",
        "SELECT syscall, errno, count(*), sum(dur_ns), min(coalesce(path, path_arg)) FROM S \
         WHERE errno IS NOT NULL GROUP BY 1, 2 ORDER BY 3 DESC",
    ),
    (
        "latency_histogram",
        "SELECT * FROM latency_histogram",
        "SELECT syscall, floor(log2(greatest(dur_ns, 1))) AS b, count(*) FROM S \
         GROUP BY 1, 2 ORDER BY 1, 2",
    ),
    (
        "contention",
        "SELECT * FROM contention",
        "WITH fastest AS (SELECT syscall, bytes, min(dur_ns) AS least FROM S WHERE errno IS NULL \
         AND ret IS NOT NULL GROUP BY 1, 2) \
         SELECT pid, tid, count(*), sum(dur_ns), sum(dur_ns - least) AS slower, \
         max(ts_ns + dur_ns) - min(ts_ns) FROM (SELECT * FROM S WHERE errno IS NULL \
         AND ret IS NOT NULL) c JOIN fastest ON c.syscall = fastest.syscall \
         AND c.bytes IS NOT DISTINCT FROM fastest.bytes GROUP BY pid, tid ORDER BY slower DESC",
    ),
    (
        "report: files",
        "SELECT *, row_number() OVER (ORDER BY total_ns DESC) AS a, \
         row_number() OVER (ORDER BY bytes DESC) AS b, row_number() OVER (ORDER BY calls DESC) AS c \
         FROM (SELECT file_id, path, calls, errors, bytes, read_bytes, written_bytes, total_ns, \
         max_ns FROM by_file WHERE file_id IS NOT NULL) QUALIFY least(a, b, c) <= 8",
        "SELECT *, row_number() OVER (ORDER BY total DESC) AS a, \
         row_number() OVER (ORDER BY bytes DESC) AS b, row_number() OVER (ORDER BY calls DESC) AS c \
         FROM (SELECT file_id, count(*) AS calls, count(errno), sum(bytes) AS bytes, \
         sum(bytes) FILTER (syscall IN ('read', 'pread64', 'readv', 'preadv', 'preadv2')), \
         sum(bytes) FILTER (syscall IN ('write', 'pwrite64', 'writev', 'pwritev', 'pwritev2')), \
         sum(dur_ns) AS total, max(dur_ns) FROM S WHERE file_id IS NOT NULL GROUP BY file_id) f \
         LEFT JOIN F USING (file_id) QUALIFY least(a, b, c) <= 8",
    ),
    (
        "report: timeline",
        "SELECT slice, sum(calls), sum(errors), sum(bytes) FILTER (call_reads(syscall)), \
         sum(bytes) FILTER (call_writes(syscall)) FROM (SELECT (ts_ns - START) // 100000000 AS slice, \
         syscall, count(*) AS calls, count(errno) AS errors, sum(bytes) AS bytes FROM syscalls \
         GROUP BY ALL) GROUP BY slice",
        "SELECT (ts_ns - START) // 100000000 AS slice, count(*), count(errno), \
         sum(bytes) FILTER (syscall IN ('read', 'pread64', 'readv', 'preadv', 'preadv2')), \
         sum(bytes) FILTER (syscall IN ('write', 'pwrite64', 'writev', 'pwritev', 'pwritev2')) \
         FROM S GROUP BY slice",
    ),
    (
        "report: end",
        "SELECT max(ts_ns + dur_ns) FROM syscalls",
        "SELECT max(ts_ns + dur_ns) FROM S",
    ),
    (
        "count, sum, max",
        "SELECT count(*), sum(bytes), max(dur_ns) FROM syscalls",
        "SELECT count(*), sum(bytes), max(dur_ns) FROM S",
    ),
    (
        "slowest 100 calls",
        "SELECT * FROM syscalls ORDER BY dur_ns DESC LIMIT 100",
        "SELECT * FROM S ORDER BY dur_ns DESC LIMIT 100",
    ),
    (
        "sizes of reads",
        "SELECT size, count(*), sum(dur_ns) FROM syscalls WHERE syscall LIKE '%read%' \
         GROUP BY 1 ORDER BY 2 DESC LIMIT 20",
        "SELECT size, count(*), sum(dur_ns) FROM S WHERE syscall LIKE '%read%' \
         GROUP BY 1 ORDER BY 2 DESC LIMIT 20",
    ),
    (
        "failed opens by path",
        "SELECT path, errno, count(*) FROM syscalls WHERE syscall = 'openat' AND errno IS NOT NULL \
         GROUP BY ALL ORDER BY 3 DESC LIMIT 20",
        "SELECT path, errno, count(*) FROM S WHERE syscall = 'openat' AND errno IS NOT NULL \
         GROUP BY ALL ORDER BY 3 DESC LIMIT 20",
    ),
    (
        "offsets of one file",
        "SELECT file_offset // 1048576, count(*), sum(bytes) FROM syscalls WHERE file_id = FILE GROUP BY 1",
        "SELECT file_offset // 1048576, count(*), sum(bytes) FROM S WHERE file_id = FILE GROUP BY 1",
    ),
    (
        "calls of one thread",
        "SELECT syscall, count(*), sum(dur_ns) FROM syscalls WHERE tid = THREAD GROUP BY 1",
        "SELECT syscall, count(*), sum(dur_ns) FROM S WHERE tid = THREAD GROUP BY 1",
    ),
    (
        "calls of 1 ms",
        "SELECT * FROM syscalls WHERE ts_ns BETWEEN AT AND AT + 1000000",
        "SELECT * FROM S WHERE ts_ns BETWEEN AT AND AT + 1000000",
    ),
    (
        "events of 1 ms",
        "SELECT * FROM events WHERE ts_ns BETWEEN AT AND AT + 1000000",
        "SELECT ts_ns, dur_ns, 'syscall', syscall, tid, rid FROM S \
         WHERE ts_ns BETWEEN AT AND AT + 1000000",
    ),
];
