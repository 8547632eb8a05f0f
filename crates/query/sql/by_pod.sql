-- One row per pod of Kubernetes, with the sums of its containers' cgroups (by_cgroup). Calls outside
-- of the containers that the kubelet names share a row with null.
--
-- namespace: Namespace of the pod.
-- pod: Name of the pod.
-- pod_uid: UID of the pod; null if the kubelet's link does not contain it.
-- containers: Containers with calls.
-- processes: Processes with calls.
-- calls: Calls: stored, lost, and counted ones (table counters).
-- lost: Calls that are not in table syscalls; included in the other columns.
-- errors: Calls that failed.
-- bytes: Bytes moved.
-- read_bytes: Bytes moved by read and its variants, copy_file_range, sendfile, and splice.
-- written_bytes: Bytes moved by write and its variants.
-- total_ns: Total duration, nanoseconds; the times of threads that wait at the same time add up.
-- max_ns: Longest duration, nanoseconds.
SELECT
    namespace, pod, pod_uid,
    count(DISTINCT container_id) FILTER (pod IS NOT NULL) AS containers,
    bounded(sum(processes)) AS processes,
    bounded(sum(calls)) AS calls,
    bounded(sum(lost)) AS lost,
    bounded(sum(errors)) AS errors,
    bounded(sum(bytes)) AS bytes,
    bounded(sum(read_bytes)) AS read_bytes,
    bounded(sum(written_bytes)) AS written_bytes,
    bounded(sum(total_ns)) AS total_ns,
    max(max_ns) AS max_ns
FROM by_cgroup
LEFT JOIN (SELECT DISTINCT container_id, pod_uid FROM containers) USING (container_id)
GROUP BY namespace, pod, pod_uid
ORDER BY total_ns DESC, namespace, pod
