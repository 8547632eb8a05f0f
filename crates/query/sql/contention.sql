-- One row a thread: its contention score (SCI), an estimate of the part of its life that it
-- lost because its requests took longer than the fastest alike. Alike are calls of one name
-- that passed through the same layers, succeeded, and moved as many bytes.
--
-- pid: Process.
-- tid: Thread.
-- comm: Its name.
-- calls: Calls that succeeded.
-- total_ns: Time that they took, nanoseconds.
-- slowdown_ns: Of which beyond the fastest alike, nanoseconds.
-- life_ns: From the beginning of the thread's first call to the end of its last, nanoseconds.
-- score: slowdown_ns / life_ns: 0, all were as fast as the fastest, to 1.
WITH sequences AS (
    SELECT rid, string_agg(DISTINCT layer, ',' ORDER BY layer) AS layers
    FROM slices WHERE layer NOT IN ('irq', 'sched') GROUP BY rid
),
calls AS (
    SELECT pid, tid, comm, ts_ns, dur_ns, syscall, bytes, layers
    FROM syscalls LEFT JOIN sequences USING (rid)
    WHERE errno IS NULL AND ret IS NOT NULL AND api = 'syscall'
),
-- Joined rather than a window, which would hold all calls in memory.
fastest AS (
    SELECT syscall, bytes, layers, min(dur_ns) AS least_ns FROM calls GROUP BY ALL
),
timed AS (
    SELECT pid, tid, comm, ts_ns, dur_ns, dur_ns - least_ns AS slower_ns
    FROM calls c JOIN fastest f ON c.syscall = f.syscall
        AND c.bytes IS NOT DISTINCT FROM f.bytes AND c.layers IS NOT DISTINCT FROM f.layers
)
SELECT
    pid, tid, arg_max(comm, ts_ns) AS comm, count(*) AS calls, sum(dur_ns)::BIGINT AS total_ns,
    sum(slower_ns)::BIGINT AS slowdown_ns, max(ts_ns + dur_ns) - min(ts_ns) AS life_ns,
    sum(slower_ns) / nullif(max(ts_ns + dur_ns) - min(ts_ns), 0) AS score
FROM timed
GROUP BY pid, tid
ORDER BY score DESC, tid
