-- One row a bio that read pages ahead of or along with what was asked for, and what became
-- of them: used when a recorded request read the range, or a page fault mapped it, before the
-- end of the recording. What other programs read counts as wasted.
--
-- rid: Request that caused it; null when nobody can tell, or it is not recorded.
-- ts_ns: When it was submitted, CLOCK_MONOTONIC nanoseconds.
-- pid: Process that submitted it.
-- tid: Thread that submitted it.
-- comm: Name of that thread.
-- file_id: The file, in table files.
-- path: Its path.
-- file_offset: Byte in the file.
-- bytes: Its bytes.
-- used_bytes: Of which were used.
-- wasted_bytes: Of which were not.
WITH ahead AS (
    SELECT row_number() OVER () AS n, * FROM bios
    WHERE origin = 'readahead' AND file_offset BETWEEN 0 AND (1::BIGINT << 62) AND file_id IS NOT NULL
        AND bytes BETWEEN 1 AND (1::BIGINT << 31)
),
-- The kernel reads at most 2 GiB at once: what a damaged capture has beyond that is left out.
uses AS (
    SELECT file_id, ts_ns + dur_ns AS ended_at_ns, file_offset AS first, file_offset + bytes AS behind
    FROM syscalls
    WHERE call_reads(syscall) AND bytes BETWEEN 1 AND (1::BIGINT << 31)
        AND file_offset BETWEEN 0 AND (1::BIGINT << 62)
    UNION ALL
    SELECT
        file_id, ts_ns + coalesce(dur_ns, 0),
        least(coalesce(around_offset, file_offset), file_offset // 4096 * 4096),
        greatest(coalesce(around_offset + around_bytes, 0), (file_offset // 4096 + 1) * 4096)
    FROM faults
    WHERE coalesce(file_offset, 0) BETWEEN 0 AND (1::BIGINT << 62)
        AND coalesce(around_offset, 0) BETWEEN 0 AND (1::BIGINT << 62)
        AND coalesce(around_bytes, 0) BETWEEN 0 AND (1::BIGINT << 31)
),
-- Both by pieces of a mebibyte, so that only those near each other are compared.
ahead_pieces AS (
    SELECT n, file_id, ts_ns, piece, greatest(file_offset, piece << 20) AS first,
        least(file_offset + bytes, (piece + 1) << 20) AS behind
    FROM (
        SELECT *, unnest(generate_series(file_offset >> 20, (file_offset + bytes - 1) >> 20)) AS piece
        FROM ahead
    )
),
use_pieces AS (
    SELECT file_id, ended_at_ns, first, behind, unnest(generate_series(first >> 20, (behind - 1) >> 20)) AS piece
    FROM uses SEMI JOIN ahead USING (file_id)
    WHERE behind - first <= (1::BIGINT << 32)
),
parts AS (
    SELECT DISTINCT n, greatest(u.first, a.first) AS first, least(u.behind, a.behind) AS behind
    FROM ahead_pieces AS a JOIN use_pieces AS u USING (file_id, piece)
    WHERE u.first < a.behind AND u.behind > a.first AND u.ended_at_ns >= a.ts_ns
),
-- What of each part no part before it had.
added AS (
    SELECT
        n, behind - greatest(first, coalesce(max(behind) OVER (
            PARTITION BY n ORDER BY first, behind ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), first)) AS bytes
    FROM parts
),
used AS (
    SELECT n, bounded(sum(greatest(bytes, 0))) AS used_bytes FROM added GROUP BY n
)
SELECT
    rid, ts_ns, pid, tid, comm, file_id, path, file_offset, bytes,
    coalesce(used_bytes, 0) AS used_bytes, bytes - coalesce(used_bytes, 0) AS wasted_bytes
FROM ahead LEFT JOIN used USING (n)
ORDER BY ts_ns, file_offset
