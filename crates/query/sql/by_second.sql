-- One row per second of the recording in which a call was entered. Stored calls only: losses are
-- not split by second (see losses.first_at_ns and last_at_ns).
--
-- second: Seconds since the start of the recording, from 0.
-- ts_ns: Start of the second, CLOCK_MONOTONIC nanoseconds.
-- calls: Calls entered in the second.
-- errors: Calls that failed.
-- bytes: Bytes moved by these calls.
-- read_bytes: Bytes moved by read and its variants, copy_file_range, sendfile, and splice.
-- written_bytes: Bytes moved by write and its variants.
-- total_ns: Total duration, nanoseconds; a long call counts in the second in which it was entered.
-- p50_ns: Median duration, nanoseconds. Exact up to 20 million stored calls, rounded down by at
--   most 1/64 beyond that.
-- p90_ns: 90th percentile, like p50_ns.
-- p99_ns: 99th percentile, like p50_ns.
-- max_ns: Longest duration, nanoseconds.
SELECT
    second, started_at_ns + second * 1000000000 AS ts_ns, calls, errors, bytes, read_bytes,
    written_bytes, total_ns, q[1] AS p50_ns, q[2] AS p90_ns, q[3] AS p99_ns, max_ns
FROM (
    SELECT
        (ts_ns - (SELECT started_at_ns FROM session)) // 1000000000 AS second,
        count(*) AS calls,
        count(errno) AS errors,
        bounded(coalesce(sum(bytes), 0)) AS bytes,
        bounded(coalesce(sum(bytes) FILTER (call_reads(syscall)), 0)) AS read_bytes,
        bounded(coalesce(sum(bytes) FILTER (call_writes(syscall)), 0)) AS written_bytes,
        bounded(sum(dur_ns)) AS total_ns,
        duration_percentiles(dur_ns) AS q,
        max(dur_ns) AS max_ns
    FROM syscalls
    GROUP BY 1
), (SELECT started_at_ns FROM session)
ORDER BY second
