-- One row per thread and interrupt that took the CPU from it during requests.
--
-- pid: Process.
-- tid: Interrupted thread.
-- comm: Its name.
-- kind: irq, softirq, timer, or call.
-- name: Name of the device, or of the softirq.
-- interrupts: Number of interrupts.
-- total_ns: Total time of their handlers, nanoseconds.
-- max_ns: Longest handler, nanoseconds.
SELECT
    pid, tid, any_value(comm) AS comm, kind, name, count(*) AS interrupts,
    bounded(sum(dur_ns)) AS total_ns, max(dur_ns) AS max_ns
FROM irqs
WHERE rid IS NOT NULL
GROUP BY pid, tid, kind, name
ORDER BY total_ns DESC, tid, kind, name
