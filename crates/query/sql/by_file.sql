-- One row per file, lost calls included; calls without a known file (a path that does not exist, a
-- loss that the kernel could not attribute) share a row with null. Calls that name a path and use no
-- descriptor, such as unlink, count to the file that had the path, to the last one of several.
--
-- file_id: The file, in table files.
-- path: Its path, the latest known one.
-- file_type: regular, directory, symlink, block, char, fifo, socket, anonymous, or unknown.
-- fs_type: Type of the file system.
-- calls: Calls: stored, lost, and counted ones (table counters).
-- lost: Calls that are not in table syscalls; included in all columns except the percentiles.
-- errors: Calls that failed.
-- bytes: Bytes moved.
-- read_bytes: Bytes read from the file: by read and its variants, and by copy_file_range, sendfile,
--   and splice, which name the file that they read first.
-- written_bytes: Bytes written to the file by write and its variants.
-- total_ns: Sum of the durations, nanoseconds.
-- p50_ns: Median duration of the stored calls, nanoseconds; null where calls were counted
--   (--rows tail). Exact up to 20 million stored calls, rounded down by at most 1/64 beyond that.
-- p90_ns: 90th percentile, like p50_ns.
-- p99_ns: 99th percentile, like p50_ns.
-- max_ns: Longest duration, lost calls included, nanoseconds.
SELECT
    file_id, path, file_type, fs_type, calls, lost, errors, bytes, read_bytes, written_bytes,
    total_ns, q[1] AS p50_ns, q[2] AS p90_ns, q[3] AS p99_ns, max_ns
FROM (
    SELECT
        file_id,
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
            file_id, count(*) AS calls, 0 AS lost, count(errno) AS errors,
            coalesce(sum(bytes), 0) AS bytes,
            coalesce(sum(bytes) FILTER (call_reads(syscall)), 0) AS read_bytes,
            coalesce(sum(bytes) FILTER (call_writes(syscall)), 0) AS written_bytes,
            sum(dur_ns) AS total_ns, max(dur_ns) AS max_ns, duration_percentiles(dur_ns) AS q,
            0 AS counted
        FROM (
            SELECT file_id, syscall, errno, bytes, dur_ns FROM syscalls WHERE file_id IS NOT NULL
            UNION ALL
            SELECT last_id, syscall, errno, bytes, dur_ns
            FROM (SELECT syscall, errno, bytes, dur_ns, path FROM syscalls WHERE file_id IS NULL)
            LEFT JOIN (SELECT path, max(file_id) AS last_id FROM files GROUP BY path) USING (path)
        )
        GROUP BY file_id
        UNION ALL
        SELECT
            file_id, sum(count), sum(lost), sum(errors), sum(bytes),
            coalesce(sum(bytes) FILTER (call_reads(syscall)), 0),
            coalesce(sum(bytes) FILTER (call_writes(syscall)), 0),
            sum(dur_ns), max(max_dur_ns), NULL, sum(count) - sum(lost)
        FROM unstored
        GROUP BY 1
    )
    GROUP BY file_id
)
LEFT JOIN (SELECT file_id, path, file_type, fs_type FROM files) USING (file_id)
ORDER BY total_ns DESC, file_id
