-- One row per mapped file with page faults: its faults, lost ones included, and its write-back.
-- Faults that the kernel could not attribute share a row with null.
--
-- file_id: The file, in table files.
-- path: Its path, the latest known one.
-- fs_type: Type of the file system.
-- faults: Page faults: stored and lost ones.
-- lost: Faults that are not in table faults; included in faults, failed, total_ns, and max_ns.
-- major: Stored faults whose page had to be read, or that waited for it.
-- failed: Faults that ended in SIGBUS.
-- write_faults: Stored faults by writes, including those to private mappings.
-- around_bytes: Bytes of the ranges whose cached pages stored faults also mapped.
-- total_ns: Sum of the durations, nanoseconds.
-- p50_ns: Median duration of the stored faults, nanoseconds. Exact up to 20 million stored calls,
--   rounded down by at most 1/64 beyond that.
-- p90_ns: 90th percentile, like p50_ns.
-- p99_ns: 99th percentile, like p50_ns.
-- max_ns: Longest duration, lost faults included, nanoseconds.
-- written_back_bytes: Bytes written back to the device (table writeback), lost requests included.
SELECT
    file_id, path, fs_type, faults, lost, major, failed, write_faults, around_bytes, total_ns,
    q[1] AS p50_ns, q[2] AS p90_ns, q[3] AS p99_ns, max_ns, written_back_bytes
FROM (
    SELECT
        file_id,
        bounded(sum(faults)) AS faults,
        bounded(sum(lost)) AS lost,
        bounded(sum(major)) AS major,
        bounded(sum(failed)) AS failed,
        bounded(sum(write_faults)) AS write_faults,
        bounded(sum(around_bytes)) AS around_bytes,
        bounded(sum(total_ns)) AS total_ns,
        max(max_ns) AS max_ns,
        any_value(q) AS q,
        bounded(sum(written_back)) AS written_back_bytes
    FROM (
        SELECT
            file_id, count(*) AS faults, 0 AS lost, count(*) FILTER (kind = 'major') AS major,
            count(*) FILTER (kind = 'failed') AS failed,
            count(*) FILTER (access = 'write') AS write_faults,
            coalesce(sum(around_bytes), 0) AS around_bytes,
            coalesce(sum(dur_ns), 0) AS total_ns, max(dur_ns) AS max_ns,
            duration_percentiles(dur_ns) AS q, 0 AS written_back
        FROM faults
        GROUP BY file_id
        UNION ALL
        SELECT
            nullif(file_id, -1), sum(count), sum(count), 0, sum(errors), 0, 0, sum(dur_ns),
            max(max_dur_ns), NULL, 0
        FROM losses
        WHERE syscall = 'page_fault'
        GROUP BY 1
        UNION ALL
        SELECT file_id, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, sum(bytes)
        FROM writeback
        GROUP BY 1
        UNION ALL
        SELECT nullif(file_id, -1), 0, 0, 0, 0, 0, 0, 0, NULL, NULL, sum(bytes)
        FROM losses
        WHERE syscall = 'writeback'
        GROUP BY 1
    )
    GROUP BY file_id
)
LEFT JOIN (SELECT file_id, path, fs_type FROM files) USING (file_id)
ORDER BY total_ns DESC, file_id
