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
    -- A bit a layer: a list of their names for each request takes five times as long.
    SELECT rid, bit_or(1 << coalesce(list_position(
        ['user', 'syscall', 'vfs', 'fs', 'pagecache', 'block', 'device'], layer), 0)) AS layers
    FROM slices WHERE layer NOT IN ('irq', 'sched') GROUP BY rid
),
-- Calls of one thread that are alike are summed up before they are compared with those of
-- others, so that no call is looked at twice or held in memory.
alike AS (
    SELECT
        pid, tid, syscall, bytes, layers, count(*) AS calls, sum(dur_ns) AS total_ns,
        min(dur_ns) AS least_ns, min(ts_ns) AS first_ns, max(ts_ns) AS last_ns,
        max(ts_ns + dur_ns) AS end_ns, arg_max(comm, ts_ns) AS comm
    FROM syscalls LEFT JOIN sequences USING (rid)
    WHERE errno IS NULL AND ret IS NOT NULL AND api = 'syscall'
    GROUP BY pid, tid, syscall, bytes, layers
),
timed AS (
    SELECT
        *, total_ns - calls * min(least_ns) OVER (PARTITION BY syscall, bytes, layers) AS slower_ns
    FROM alike
)
SELECT
    pid, tid, arg_max(comm, last_ns) AS comm, sum(calls)::BIGINT AS calls,
    sum(total_ns)::BIGINT AS total_ns, sum(slower_ns)::BIGINT AS slowdown_ns,
    max(end_ns) - min(first_ns) AS life_ns,
    sum(slower_ns) / nullif(max(end_ns) - min(first_ns), 0) AS score
FROM timed
GROUP BY pid, tid
ORDER BY score DESC, tid
