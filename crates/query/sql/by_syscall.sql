-- One row per call name, lost calls included.
--
-- syscall: Name of the call, as in strace.
-- class: data, metadata, directory, xattr, memory, async, socket, or wait.
-- calls: Calls: stored, lost, and counted ones (table counters).
-- pending: Calls that had not ended when they were written; their time so far counts.
-- lost: Calls that are not in table syscalls; included in all columns except the percentiles.
-- errors: Calls that failed.
-- bytes: Bytes moved.
-- total_ns: Sum of the durations, nanoseconds.
-- p50_ns: Median duration of the stored calls, nanoseconds; null where calls were counted
--   (--rows tail). Exact up to 20 million stored calls, rounded down by at most 1/64 beyond that. latency_histogram includes lost calls.
-- p90_ns: 90th percentile, like p50_ns.
-- p99_ns: 99th percentile, like p50_ns.
-- max_ns: Longest duration, lost calls included, nanoseconds.
SELECT
    syscall, coalesce(call_class(syscall), 'unknown') AS class, calls, pending, lost, errors, bytes, total_ns,
    q[1] AS p50_ns, q[2] AS p90_ns, q[3] AS p99_ns, max_ns
FROM (
    SELECT
        syscall,
        bounded(sum(calls)) AS calls,
        bounded(sum(pending)) AS pending,
        bounded(sum(lost)) AS lost,
        bounded(sum(errors)) AS errors,
        bounded(sum(bytes)) AS bytes,
        bounded(sum(total_ns)) AS total_ns,
        max(max_ns) AS max_ns,
        -- Counted calls are not a random sample, because slow and failing ones have rows.
        CASE WHEN sum(counted) = 0 THEN any_value(q) END AS q
    FROM (
        SELECT
            syscall, count(*) AS calls, count(*) - count(ret) AS pending, 0 AS lost,
            count(errno) AS errors, coalesce(sum(bytes), 0) AS bytes, sum(dur_ns) AS total_ns,
            max(dur_ns) AS max_ns, duration_percentiles(dur_ns) AS q,
            0 AS counted
        FROM syscalls
        GROUP BY syscall
        UNION ALL
        SELECT
            syscall, sum(count), 0, sum(lost), sum(errors), sum(bytes), sum(dur_ns),
            max(max_dur_ns), NULL, sum(count) - sum(lost)
        FROM unstored
        GROUP BY syscall
    )
    GROUP BY syscall
)
ORDER BY total_ns DESC, syscall
