-- Where the wall time of each recorded thread went: one row per thread, state, and reason. The rows
-- of a thread add up to its time in the recording. Needs layer sched, with waits outside of requests
-- (column waits.state); otherwise there are no rows. Threads without any wait, and threads whose
-- waits contradict each other, are left out.
--
-- tid: Thread id in the host's namespace.
-- comm: Its name, the latest one.
-- pid: Its process.
-- state: running: on a CPU. runnable: it wanted a CPU. blocked: it waited for something else.
--   unknown: not observed.
-- reason: cpu if it is runnable; as in waits if it was blocked. Of an unknown state
--   unseen_start (the thread is older than the recording, or the command's first one, and has
--   neither a wait nor a call yet)
--   or unseen_return (it left the CPU, and no row says when it ran again). Null while it runs.
-- time_ns: The time, nanoseconds.
-- share: The fraction of the thread's time in the recording, from 0 to 1.
WITH recorded AS (
    SELECT
        started_at_ns AS begin_ns,
        coalesce(
            ended_at_ns, (SELECT max(ts_ns::HUGEINT + coalesce(dur_ns, 0)) FROM waits)
        ) AS end_ns,
        -- The first process of a command is recorded from the moment on in which it executes the
        -- command.
        CASE WHEN command IS NULL THEN begin_ns
            ELSE greatest(begin_ns, (SELECT min(started_at_ns) FROM processes)) END AS older_ns
    FROM session
    WHERE EXISTS (SELECT 1 FROM waits WHERE state IS NOT NULL)
),
lives AS (
    SELECT
        tid, pid, comm, started_at_ns,
        coalesce(
            lead(started_at_ns) OVER (PARTITION BY tid ORDER BY started_at_ns), 9223372036854775807
        ) AS next_at_ns,
        -- Times that cannot be, as a damaged capture has them, must not overflow.
        greatest(started_at_ns, begin_ns)::HUGEINT AS from_ns,
        least(coalesce(ended_at_ns, end_ns), end_ns)::HUGEINT AS until_ns,
        started_at_ns <= older_ns AS older
    FROM processes, recorded
),
-- Each wait in the life in which it began: blocked until it was woken, then runnable.
periods AS NOT MATERIALIZED (
    SELECT
        lives.tid, started_at_ns, from_ns, until_ns, ts_ns, reason,
        ts_ns::HUGEINT + dur_ns AS ran_ns,
        CASE
            WHEN reason IN ('cpu', 'preempted') THEN ts_ns
            ELSE ts_ns::HUGEINT + dur_ns - coalesce(run_queue_ns, 0)
        END AS woken_ns
    FROM waits
    JOIN lives ON waits.tid = lives.tid AND ts_ns >= started_at_ns AND ts_ns < next_at_ns
),
sums AS MATERIALIZED (
    SELECT
        tid, started_at_ns, reason, min(ts_ns) AS first_ns,
        bounded(coalesce(sum(
            greatest(0, least(woken_ns, until_ns) - greatest(ts_ns, from_ns))
        ) FILTER (ran_ns IS NOT NULL), 0)) AS blocked_ns,
        bounded(coalesce(sum(
            greatest(0, least(ran_ns, until_ns) - greatest(woken_ns, from_ns))
        ) FILTER (ran_ns IS NOT NULL), 0)) AS runnable_ns
    FROM periods
    GROUP BY tid, started_at_ns, reason
),
-- Waits without an end last at most until the next one of their thread.
open_waits AS (
    SELECT tid, started_at_ns, ts_ns, from_ns, until_ns FROM periods WHERE ran_ns IS NULL
),
-- A thread has few open waits: a list of them is joined in place of all pairs of rows.
next_waits AS (
    SELECT tid, open_ns AS ts_ns, min(next_ns) AS next_ns
    FROM (
        SELECT waits.tid, waits.ts_ns AS next_ns, unnest(opens) AS open_ns
        FROM waits
        JOIN (
            SELECT tid, list(ts_ns) AS opens, min(ts_ns) AS first_ns
            FROM waits WHERE dur_ns IS NULL GROUP BY tid
        ) AS open_lists
            ON waits.tid = open_lists.tid AND waits.ts_ns > first_ns
    )
    WHERE next_ns > open_ns
    GROUP BY tid, open_ns
),
unseen AS (
    SELECT
        tid, started_at_ns,
        bounded(sum(
            greatest(0, least(coalesce(next_ns, until_ns), until_ns) - greatest(ts_ns, from_ns))
        )) AS unseen_ns
    FROM open_waits LEFT JOIN next_waits USING (tid, ts_ns)
    GROUP BY tid, started_at_ns
),
-- A call proves that its thread ran, but for a call that it waited in before it was recorded.
first_calls AS (
    SELECT tid, min(ts_ns) AS call_at_ns
    FROM syscalls WHERE api = 'syscall' AND op_flags IS NULL GROUP BY tid
),
first_rows AS (
    SELECT tid, started_at_ns, least(min(first_ns), any_value(call_at_ns)) AS first_ns
    FROM sums LEFT JOIN first_calls USING (tid)
    GROUP BY tid, started_at_ns
),
walls AS MATERIALIZED (
    SELECT
        lives.tid, started_at_ns, pid, comm, until_ns - from_ns AS wall_ns,
        CASE WHEN older THEN least(greatest(0, first_ns - from_ns), until_ns - from_ns) ELSE 0 END
            AS before_ns
    FROM lives JOIN first_rows USING (tid, started_at_ns)
    WHERE until_ns > from_ns
),
parts AS MATERIALIZED (
    SELECT tid, started_at_ns, 'blocked' AS state, reason, blocked_ns AS time_ns FROM sums
    UNION ALL
    SELECT tid, started_at_ns, 'runnable', 'cpu', bounded(sum(runnable_ns)) FROM sums
    GROUP BY tid, started_at_ns
    UNION ALL
    SELECT tid, started_at_ns, 'unknown', 'unseen_return', unseen_ns FROM unseen
    UNION ALL
    SELECT tid, started_at_ns, 'unknown', 'unseen_start', before_ns FROM walls
),
rest AS (
    SELECT tid, started_at_ns, wall_ns - bounded(sum(time_ns)) AS running_ns
    FROM walls JOIN parts USING (tid, started_at_ns)
    GROUP BY tid, started_at_ns, wall_ns
    HAVING running_ns >= 0
),
states AS (
    SELECT * FROM parts SEMI JOIN rest USING (tid, started_at_ns)
    UNION ALL
    SELECT tid, started_at_ns, 'running', NULL, running_ns FROM rest
)
SELECT
    tid, arg_max(comm, started_at_ns) AS comm, pid, state, reason,
    bounded(sum(time_ns)) AS time_ns,
    sum(time_ns) / sum(sum(time_ns)) OVER (PARTITION BY tid, pid) AS share
FROM states JOIN walls USING (tid, started_at_ns)
GROUP BY tid, pid, state, reason
HAVING sum(time_ns) > 0
ORDER BY tid, pid, time_ns DESC, state, reason
