-- One row a thread and interrupt: what took the CPU from it in the course of requests.
--
-- pid: Process.
-- tid: Thread that was interrupted.
-- comm: Its name.
-- kind: irq, softirq, timer or call.
-- name: Name of the device, or of the softirq.
-- interrupts: How many.
-- total_ns: Time that their handlers took, nanoseconds.
-- max_ns: Longest, nanoseconds.
SELECT
    pid, tid, any_value(comm) AS comm, kind, name, count(*) AS interrupts,
    bounded(sum(dur_ns)) AS total_ns, max(dur_ns) AS max_ns
FROM irqs
WHERE rid IS NOT NULL
GROUP BY pid, tid, kind, name
ORDER BY total_ns DESC, tid, kind, name
