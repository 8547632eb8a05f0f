-- One row per process with its cgroup, and the unit, container, and pod that the cgroup belongs to: the calls of
-- the process are the tenant's. A process id that was used by processes of several cgroups has one row
-- per thread and time instead. Views by_cgroup, by_unit, and by_pod have the sums.
--
-- pid: Process.
-- tid: Thread; null if the row is for all threads of the process at any time.
-- from_ns: The row is for calls from this time on, CLOCK_MONOTONIC nanoseconds; null if from the beginning.
-- until_ns: The row is for calls before this time; null if until the end.
-- cgroup: Path of the cgroup (v2): the one in which the process executed its program, or in which it was when
--   the recording began.
-- unit: Unit of systemd: the innermost service or scope in that path; null if there is none.
-- container_id: Id of the container; null outside of containers.
-- namespace: Kubernetes' namespace of its pod; null if the kubelet does not name the container.
-- pod: Name of its pod.
-- container: Name of the container in its pod.
WITH several AS (
    -- Process ids that were used again, in another cgroup.
    SELECT pid FROM processes WHERE pid IS NOT NULL
    GROUP BY pid HAVING count(DISTINCT cgroup) > 1
),
owners AS (
    SELECT
        pid, NULL::INTEGER AS tid, NULL::BIGINT AS from_ns, NULL::BIGINT AS until_ns,
        any_value(cgroup) AS cgroup, any_value(container_id) AS container_id
    FROM processes WHERE pid IS NOT NULL AND pid NOT IN (SELECT pid FROM several)
    GROUP BY pid
    UNION ALL
    SELECT pid, tid, from_ns, until_ns, cgroup, container_id
    FROM (
        SELECT
            pid, tid, cgroup, container_id,
            CASE WHEN lag(tid) OVER of_thread IS NOT NULL THEN started_at_ns END AS from_ns,
            lead(started_at_ns) OVER of_thread AS until_ns
        FROM processes
        WINDOW of_thread AS (PARTITION BY tid ORDER BY started_at_ns)
    )
    WHERE pid IN (SELECT pid FROM several)
),
named AS (
    SELECT container_id, any_value(namespace) AS namespace, any_value(pod) AS pod, any_value(name) AS container
    FROM containers GROUP BY container_id
)
SELECT
    pid, tid, from_ns, until_ns, cgroup,
    nullif(regexp_extract(cgroup, '.*/([^/]+[.](?:service|scope))(?:/|$)', 1), '') AS unit,
    container_id, namespace, pod, container
FROM owners LEFT JOIN named USING (container_id)
