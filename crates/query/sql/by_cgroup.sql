-- One row per cgroup. The calls of a process belong to the cgroup in which it executed its program,
-- or in which it was when the recording began. Losses that the kernel could not attribute, and
-- calls of an imported log, share a row with null.
--
-- cgroup: Path of the cgroup (v2).
-- unit: Unit of systemd: the innermost service or scope in that path; null if there is none.
-- container_id: Id of the container; null outside of containers.
-- namespace: Kubernetes' namespace of its pod; null if the kubelet does not name the container.
-- pod: Name of its pod.
-- container: Name of the container in its pod.
-- processes: Processes with calls.
-- calls: Calls: stored, lost, and counted ones (table counters).
-- lost: Calls that are not in table syscalls; included in the other columns.
-- errors: Calls that failed.
-- bytes: Bytes moved.
-- read_bytes: Bytes moved by read and its variants, copy_file_range, sendfile, and splice.
-- written_bytes: Bytes moved by write and its variants.
-- total_ns: Total duration, nanoseconds; the times of threads that wait at the same time add up.
-- max_ns: Longest duration, nanoseconds.
WITH latest AS (
    SELECT pid, any_value(cgroup ORDER BY started_at_ns DESC) AS cgroup
    FROM processes GROUP BY pid
),
several AS (
    -- Process ids that were used again, in another cgroup.
    SELECT DISTINCT pid FROM tenants WHERE tid IS NOT NULL
),
of_cgroup AS (
    SELECT
        cgroup, any_value(unit) AS unit, any_value(container_id) AS container_id,
        any_value(namespace) AS namespace, any_value(pod) AS pod, any_value(container) AS container
    FROM tenants WHERE cgroup IS NOT NULL GROUP BY cgroup
),
stored AS (
    SELECT pid, tid, ts_ns, syscall, errno, bytes, dur_ns FROM syscalls
),
sums AS (
    SELECT
        cgroup, pid, count(*) AS calls, 0 AS lost, count(errno) AS errors,
        coalesce(sum(bytes), 0) AS bytes,
        coalesce(sum(bytes) FILTER (call_reads(syscall)), 0) AS read_bytes,
        coalesce(sum(bytes) FILTER (call_writes(syscall)), 0) AS written_bytes,
        sum(dur_ns) AS total_ns, max(dur_ns) AS max_ns
    FROM (
        SELECT latest.cgroup, stored.* FROM stored LEFT JOIN latest USING (pid)
        WHERE pid IS NULL OR pid NOT IN (SELECT pid FROM several)
        UNION ALL
        SELECT owner.cgroup, calls.*
        FROM (SELECT * FROM stored WHERE pid IN (SELECT pid FROM several)) AS calls
        ASOF LEFT JOIN (
            SELECT pid, tid, coalesce(from_ns, 0) AS from_ns, cgroup FROM tenants WHERE tid IS NOT NULL
        ) AS owner
            ON calls.pid = owner.pid AND calls.tid = owner.tid AND calls.ts_ns >= owner.from_ns
    )
    GROUP BY cgroup, pid
    UNION ALL
    SELECT
        latest.cgroup, nullif(unstored.pid, -1), sum(count), sum(lost), sum(errors), sum(bytes),
        coalesce(sum(bytes) FILTER (call_reads(syscall)), 0),
        coalesce(sum(bytes) FILTER (call_writes(syscall)), 0), sum(dur_ns), max(max_dur_ns)
    FROM unstored LEFT JOIN latest USING (pid)
    GROUP BY 1, 2
)
SELECT
    cgroup, unit, container_id, namespace, pod, container,
    processes, calls, lost, errors, bytes, read_bytes, written_bytes, total_ns, max_ns
FROM (
    SELECT
        cgroup,
        count(DISTINCT pid) AS processes,
        bounded(sum(calls)) AS calls,
        bounded(sum(lost)) AS lost,
        bounded(sum(errors)) AS errors,
        bounded(sum(bytes)) AS bytes,
        bounded(sum(read_bytes)) AS read_bytes,
        bounded(sum(written_bytes)) AS written_bytes,
        bounded(sum(total_ns)) AS total_ns,
        max(max_ns) AS max_ns
    FROM sums
    GROUP BY cgroup
)
LEFT JOIN of_cgroup USING (cgroup)
ORDER BY total_ns DESC, cgroup
