-- One row per thread: its contention score (SCI), an estimate of the fraction of its life that it
-- lost because its calls took longer than the fastest similar ones. Calls are similar if they have
-- the same name, moved the same number of bytes, and passed through the same kernel functions and
-- block requests in the same order. Preemption, interrupts, and waits do not make a call a
-- different one. Calls that failed, had not ended, or started before the recording are left out.
--
-- pid: Process.
-- tid: Thread.
-- comm: Its name.
-- calls: Calls that are compared.
-- total_ns: Their total duration, nanoseconds.
-- slowdown_ns: The part of total_ns beyond the fastest similar calls, nanoseconds.
-- life_ns: From the start of the thread to its end, as far as it was recorded, nanoseconds; the sum
--   if several threads of the process had the same id one after another; null if table processes
--   does not have the thread.
-- score: slowdown_ns / life_ns: from 0 (all calls were as fast as the fastest) to 1.
WITH steps AS (
    -- Hashes: texts would take four times as long.
    SELECT rid, ts_ns, depth, hash(layer, name) AS step
    FROM slices
    -- Visits of block and device are times at which the request waited: how many there are
    -- depends on what else the machine did. The requests to devices themselves follow.
    WHERE layer IN ('vfs', 'fs', 'pagecache') OR (layer = 'block' AND name = 'submit_bio')
    UNION ALL
    SELECT submitted.rid, ts_ns, 3, hash(device, op)
    FROM (
        SELECT submit_rid AS rid, block_id FROM bios WHERE submit_rid IS NOT NULL GROUP BY ALL
    ) AS submitted
    JOIN block USING (block_id)
),
-- Most requests have one or two steps, whose order follows from the first and the last: sorting the
-- steps of every request would take ten times as long.
ends AS (
    SELECT
        rid, count(*) AS n, arg_min(step, ts_ns * 4 + least(depth, 3)) AS first_step,
        arg_max(step, ts_ns * 4 + least(depth, 3)) AS last_step
    FROM steps GROUP BY rid
),
sequences AS (
    SELECT rid, hash(n, first_step, last_step) AS sequence FROM ends WHERE n <= 2
    UNION ALL
    SELECT rid, hash(list(step ORDER BY ts_ns, depth, step)) AS sequence
    FROM steps SEMI JOIN (SELECT rid FROM ends WHERE n > 2) USING (rid) GROUP BY rid
),
-- Similar calls of one thread are summed up before they are compared with other threads' calls, so
-- that no call is read twice or held in memory.
alike AS (
    SELECT
        pid, tid, syscall, bytes, sequence, count(*) AS calls, sum(dur_ns) AS total_ns,
        min(dur_ns) AS least_ns, max(ts_ns) AS last_at_ns, max(ts_ns + dur_ns) AS ended_at_ns,
        arg_max(comm, ts_ns) AS comm
    FROM syscalls LEFT JOIN sequences USING (rid)
    WHERE errno IS NULL AND ret IS NOT NULL AND dur_ns IS NOT NULL AND api = 'syscall'
        AND op_flags IS NULL
    GROUP BY pid, tid, syscall, bytes, sequence
),
timed AS (
    SELECT
        *, total_ns - calls::HUGEINT * min(least_ns) OVER (PARTITION BY syscall, bytes, sequence) AS slower_ns
    FROM alike
),
threads AS (
    SELECT
        pid, tid, arg_max(comm, last_at_ns) AS comm, bounded(sum(calls)) AS calls,
        bounded(sum(total_ns)) AS total_ns, bounded(sum(slower_ns)) AS slowdown_ns
    FROM timed
    GROUP BY pid, tid
),
-- A session in progress has no end yet: its last call is the end so far.
recorded AS (
    SELECT started_at_ns, coalesce(ended_at_ns, (SELECT max(ended_at_ns) FROM alike)) AS ended_at_ns FROM session
),
lives AS (
    SELECT
        pid, tid,
        bounded(sum(
            greatest(
                0,
                least(coalesce(processes.ended_at_ns, recorded.ended_at_ns), recorded.ended_at_ns)
                    - greatest(processes.started_at_ns, recorded.started_at_ns)
            )
        )) AS life_ns
    FROM processes, recorded
    GROUP BY pid, tid
)
SELECT
    threads.pid, threads.tid, comm, calls, total_ns, slowdown_ns, life_ns,
    slowdown_ns / nullif(life_ns, 0) AS score
FROM threads
LEFT JOIN lives ON threads.tid = lives.tid AND threads.pid IS NOT DISTINCT FROM lives.pid
ORDER BY score DESC NULLS LAST, threads.tid
