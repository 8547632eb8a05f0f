-- One row per thread. Stored calls only: the kernel splits losses by process, not by thread (see
-- by_process).
--
-- pid: Process id in the host's namespace.
-- tid: Thread id in the host's namespace.
-- comm: Name of the thread in its last call.
-- calls: Calls.
-- errors: Calls that failed.
-- bytes: Bytes moved.
-- read_bytes: Bytes moved by read and its variants, copy_file_range, sendfile, and splice.
-- written_bytes: Bytes moved by write and its variants.
-- total_ns: Time spent in the calls, nanoseconds.
-- p50_ns: Median duration, nanoseconds. Exact up to 20 million stored calls, rounded down by at
--   most 1/64 beyond that.
-- p90_ns: 90th percentile, like p50_ns.
-- p99_ns: 99th percentile, like p50_ns.
-- max_ns: Longest duration, nanoseconds.
-- first_at_ns: When the first call was entered, CLOCK_MONOTONIC nanoseconds.
-- last_at_ns: When the last call was entered.
SELECT
    pid, tid, comm, calls, errors, bytes, read_bytes, written_bytes, total_ns,
    q[1] AS p50_ns, q[2] AS p90_ns, q[3] AS p99_ns, max_ns, first_at_ns, last_at_ns
FROM (
    SELECT
        pid,
        tid,
        arg_max(comm, ts_ns) AS comm,
        count(*) AS calls,
        count(errno) AS errors,
        bounded(coalesce(sum(bytes), 0)) AS bytes,
        bounded(coalesce(sum(bytes) FILTER (call_reads(syscall)), 0)) AS read_bytes,
        bounded(coalesce(sum(bytes) FILTER (call_writes(syscall)), 0)) AS written_bytes,
        bounded(sum(dur_ns)) AS total_ns,
        duration_percentiles(dur_ns) AS q,
        max(dur_ns) AS max_ns,
        min(ts_ns) AS first_at_ns,
        max(ts_ns) AS last_at_ns
    FROM syscalls
    GROUP BY pid, tid
)
ORDER BY total_ns DESC, pid, tid
