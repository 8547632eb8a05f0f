-- One row per bio that read pages ahead of or around the requested range, and how many of them were
-- used. A page counts as used if a recorded request read it or a page fault mapped it before the
-- end of the recording. Pages that only other programs read count as wasted.
--
-- rid: Request that caused it; null if it is unknown or not recorded.
-- ts_ns: When it was submitted, CLOCK_MONOTONIC nanoseconds.
-- pid: Process that submitted it.
-- tid: Thread that submitted it.
-- comm: Name of that thread.
-- file_id: The file, in table files.
-- path: Its path.
-- file_offset: Byte in the file.
-- bytes: Size in bytes.
-- used_bytes: Bytes of the pages that were used.
-- wasted_bytes: Bytes of the other pages.
WITH ahead AS (
    SELECT row_number() OVER () AS n, * FROM bios
    WHERE origin = 'readahead' AND file_offset BETWEEN 0 AND (1::BIGINT << 62) AND file_id IS NOT NULL
        AND bytes BETWEEN 1 AND (1::BIGINT << 31)
),
-- The kernel reads at most 2 GiB at once; more can only come from a damaged capture and is ignored.
-- A page counts as a whole, of which a request may read a few bytes.
uses AS (
    SELECT
        file_id, ts_ns + dur_ns AS ended_at_ns, file_offset // 4096 * 4096 AS first,
        ((file_offset + bytes - 1) // 4096 + 1) * 4096 AS behind
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
-- Both in pieces of one MiB, so that only neighboring pieces are compared.
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
-- The part of each piece that no earlier piece covers.
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
