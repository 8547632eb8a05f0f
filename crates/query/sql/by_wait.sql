-- One row per reason for being off the CPU during requests and source of the wake-up.
--
-- reason: As in waits.
-- waker: Name of the thread or interrupt that woke them; null for preempted threads, and if not
--   observed.
-- waits: Number of waits.
-- threads: Threads that waited.
-- total_ns: Time off the CPU, nanoseconds.
-- run_queue_ns: The part in which they could have run, but other threads had the CPU.
-- p50_ns: Median wait, nanoseconds.
-- p99_ns: 99th percentile.
-- max_ns: Longest wait, nanoseconds.
SELECT
    reason, waker, waits, threads, total_ns, run_queue_ns, q[1] AS p50_ns, q[2] AS p99_ns, max_ns
FROM (
    SELECT
        reason, waker, count(*) AS waits, count(DISTINCT tid) AS threads,
        bounded(coalesce(sum(dur_ns), 0)) AS total_ns,
        bounded(coalesce(sum(if(reason = 'cpu', dur_ns, run_queue_ns)), 0)) AS run_queue_ns,
        quantile_disc(dur_ns, [0.5, 0.99]) AS q, max(dur_ns) AS max_ns
    FROM waits
    WHERE rid IS NOT NULL
    GROUP BY reason, waker
)
ORDER BY total_ns DESC, reason, waker
