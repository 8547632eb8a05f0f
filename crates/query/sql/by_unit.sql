-- One row per unit of systemd, a service or scope, with the sums of its cgroups (by_cgroup). Calls of
-- processes in none share a row with null.
--
-- unit: Name of the unit.
-- processes: Processes with calls.
-- calls: Calls: stored, lost, and counted ones (table counters).
-- lost: Calls that are not in table syscalls; included in the other columns.
-- errors: Calls that failed.
-- bytes: Bytes moved.
-- read_bytes: Bytes moved by read and its variants, copy_file_range, sendfile, and splice.
-- written_bytes: Bytes moved by write and its variants.
-- total_ns: Total duration, nanoseconds; the times of threads that wait at the same time add up.
-- max_ns: Longest duration, nanoseconds.
SELECT
    unit,
    bounded(sum(processes)) AS processes,
    bounded(sum(calls)) AS calls,
    bounded(sum(lost)) AS lost,
    bounded(sum(errors)) AS errors,
    bounded(sum(bytes)) AS bytes,
    bounded(sum(read_bytes)) AS read_bytes,
    bounded(sum(written_bytes)) AS written_bytes,
    bounded(sum(total_ns)) AS total_ns,
    max(max_ns) AS max_ns
FROM by_cgroup
GROUP BY unit
ORDER BY total_ns DESC, unit
