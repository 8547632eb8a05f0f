-- One row per process, lost calls included; losses that the kernel could not attribute share a row
-- with null.
--
-- pid: Process id in the host's namespace.
-- ppid: Parent process.
-- comm: Name of its main thread, the latest one.
-- exe: Path of the executable.
-- cmdline: Command line.
-- threads: Threads with stored calls.
-- calls: Calls: stored, lost, and counted ones (table counters).
-- lost: Calls that are not in table syscalls; included in all columns except threads and the
--   percentiles.
-- errors: Calls that failed.
-- bytes: Bytes moved.
-- read_bytes: Bytes moved by read and its variants, copy_file_range, sendfile, and splice.
-- written_bytes: Bytes moved by write and its variants.
-- total_ns: Total duration, nanoseconds; the times of threads that wait at the same time add up.
-- p50_ns: Median duration of the stored calls, nanoseconds; null where calls were counted
--   (--rows tail). Exact up to 20 million stored calls, rounded down by at most 1/64 beyond that.
-- p90_ns: 90th percentile, like p50_ns.
-- p99_ns: 99th percentile, like p50_ns.
-- max_ns: Longest duration, lost calls included, nanoseconds.
-- started_at_ns: When it started, CLOCK_MONOTONIC nanoseconds.
-- ended_at_ns: When it ended; null if it had not ended.
-- exit_status: Exit status, or 128 and the signal that ended it.
SELECT
    pid, ppid, comm, exe, cmdline, threads, calls, lost, errors, bytes, read_bytes,
    written_bytes, total_ns, q[1] AS p50_ns, q[2] AS p90_ns, q[3] AS p99_ns, max_ns,
    started_at_ns, ended_at_ns, exit_status
FROM (
    SELECT
        pid,
        bounded(sum(threads)) AS threads,
        bounded(sum(calls)) AS calls,
        bounded(sum(lost)) AS lost,
        bounded(sum(errors)) AS errors,
        bounded(sum(bytes)) AS bytes,
        bounded(sum(read_bytes)) AS read_bytes,
        bounded(sum(written_bytes)) AS written_bytes,
        bounded(sum(total_ns)) AS total_ns,
        max(max_ns) AS max_ns,
        -- Counted calls are not a random sample, because slow and failing ones have rows.
        CASE WHEN sum(counted) = 0 THEN any_value(q) END AS q
    FROM (
        SELECT
            pid, count(DISTINCT tid) AS threads, count(*) AS calls, 0 AS lost,
            count(errno) AS errors, coalesce(sum(bytes), 0) AS bytes,
            coalesce(sum(bytes) FILTER (call_reads(syscall)), 0) AS read_bytes,
            coalesce(sum(bytes) FILTER (call_writes(syscall)), 0) AS written_bytes,
            sum(dur_ns) AS total_ns, max(dur_ns) AS max_ns, duration_percentiles(dur_ns) AS q,
            0 AS counted
        FROM syscalls
        GROUP BY pid
        UNION ALL
        SELECT
            nullif(pid, -1), 0, sum(count), sum(lost), sum(errors), sum(bytes),
            coalesce(sum(bytes) FILTER (call_reads(syscall)), 0),
            coalesce(sum(bytes) FILTER (call_writes(syscall)), 0),
            sum(dur_ns), max(max_dur_ns), NULL, sum(count) - sum(lost)
        FROM unstored
        GROUP BY 1
    )
    GROUP BY pid
)
LEFT JOIN (
    -- A process id that was used again shows its last owner.
    SELECT pid, ppid, comm, exe, cmdline, started_at_ns, ended_at_ns, exit_status
    FROM processes
    WHERE pid = tid
    QUALIFY row_number() OVER (PARTITION BY pid ORDER BY started_at_ns DESC) = 1
) USING (pid)
ORDER BY total_ns DESC, pid
