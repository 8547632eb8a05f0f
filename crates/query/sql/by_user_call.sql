-- One row per function of a library whose calls were recorded (record --library), with what its
-- calls asked of the system. Calls that were lost are not included (table losses). Of a function
-- with counted calls only their number is known: all other columns are null then.
--
-- class: Class of the function, as --library takes it.
-- function: Name of the function.
-- library: Path of the library, or of the program that contains the function.
-- calls: Its calls, with a row or counted.
-- counted: Calls among these without a row, because the function was called more often than
--   --library-budget allows (table user_call_counters).
-- failed: Calls whose return value says that they failed.
-- total_ns: Sum of the durations, nanoseconds.
-- p50_ns: Median duration, nanoseconds. Exact up to 20 million stored calls, rounded down by at most
--   1/64 beyond that.
-- p90_ns: 90th percentile, like p50_ns.
-- p99_ns: 99th percentile, like p50_ns.
-- max_ns: Longest duration, nanoseconds.
-- size: Bytes requested, sum; null if the function takes no number of bytes.
-- bytes: Bytes moved, as the function reports them, sum; null if it does not.
-- reached: Calls that made recorded system calls themselves, rather than by another recorded library
--   call.
-- syscalls: These system calls.
-- syscall_ns: Sum of their durations, nanoseconds.
-- syscall_bytes: Bytes that they moved, sum.
WITH made AS (
    SELECT
        user_call, count(*) AS syscalls, coalesce(sum(dur_ns), 0) AS dur_ns,
        coalesce(sum(bytes), 0) AS bytes
    FROM syscalls WHERE user_call IS NOT NULL GROUP BY user_call
),
counters AS (
    SELECT class, function, library, sum(count) AS counted
    FROM user_call_counters GROUP BY class, function, library
),
stored AS (
    SELECT
        class, function, library, count(*) AS calls, count(*) FILTER (failed) AS failed,
        bounded(coalesce(sum(calls.dur_ns), 0)) AS total_ns,
        duration_percentiles(calls.dur_ns) AS q, max(calls.dur_ns) AS max_ns,
        bounded(sum(size)) AS size, bounded(sum(calls.bytes)) AS bytes,
        count(made.user_call) AS reached,
        bounded(coalesce(sum(made.syscalls), 0)) AS syscalls,
        bounded(coalesce(sum(made.dur_ns), 0)) AS syscall_ns,
        bounded(coalesce(sum(made.bytes), 0)) AS syscall_bytes
    FROM user_calls AS calls
    LEFT JOIN made USING (user_call)
    GROUP BY class, function, library
)
SELECT
    class, function, library, bounded(coalesce(calls, 0) + coalesce(counted, 0)) AS calls,
    bounded(coalesce(counted, 0)) AS counted,
    whole.failed, whole.total_ns, whole.p50_ns, whole.p90_ns, whole.p99_ns, whole.max_ns, whole.size,
    whole.bytes, whole.reached, whole.syscalls, whole.syscall_ns, whole.syscall_bytes
FROM (
    SELECT
        class, function, library, calls, counted,
        CASE WHEN counted IS NULL THEN struct_pack(
            failed := failed, total_ns := total_ns, p50_ns := q[1], p90_ns := q[2], p99_ns := q[3],
            max_ns := max_ns, size := size, bytes := bytes, reached := reached,
            syscalls := syscalls, syscall_ns := syscall_ns, syscall_bytes := syscall_bytes
        ) END AS whole
    FROM stored FULL JOIN counters USING (class, function, library)
)
ORDER BY whole.total_ns DESC NULLS FIRST, calls DESC, class, function, library
