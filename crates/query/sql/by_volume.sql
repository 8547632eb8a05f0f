-- One row per volume of Kubernetes: the files below `/var/lib/kubelet/pods/UID/volumes/PLUGIN/NAME` on
-- the host. A volume that several pods use has one row. Files that were not reached through such a
-- directory have none.
--
-- plugin: Plugin that serves it, as the kubelet names it: kubernetes.io~csi.
-- volume: Its name there; of a persistent volume, the name of the PersistentVolume.
-- namespace: Namespace of its claim; null if no claim is known (record --kubernetes).
-- claim: Name of its PersistentVolumeClaim; null if no claim is known. A pod can only use claims of its own
--   namespace: where the kubelet names another one for the pod, the volume only has the name of a
--   PersistentVolume, and no claim.
-- files: Files with calls.
-- calls: Calls: stored, lost, and counted ones (table counters). A call on two files counts for the
--   file of its first descriptor.
-- lost: Calls that are not in table syscalls; included in the other columns.
-- errors: Calls that failed.
-- bytes: Bytes moved.
-- read_bytes: Bytes moved by read and its variants, copy_file_range, sendfile, and splice.
-- written_bytes: Bytes moved by write and its variants.
-- total_ns: Total duration, nanoseconds; the times of threads that wait at the same time add up.
-- max_ns: Longest duration, nanoseconds.
SELECT
    plugin, volume,
    max(named.namespace) AS namespace, max(named.claim) AS claim,
    count(*) AS files,
    bounded(sum(calls)) AS calls,
    bounded(sum(lost)) AS lost,
    bounded(sum(errors)) AS errors,
    bounded(sum(bytes)) AS bytes,
    bounded(sum(read_bytes)) AS read_bytes,
    bounded(sum(written_bytes)) AS written_bytes,
    bounded(sum(total_ns)) AS total_ns,
    max(max_ns) AS max_ns
FROM (
    SELECT found.*, place.directory, place.pod_uid, place.plugin, place.volume
    FROM (
        SELECT
            by_file.*,
            regexp_extract(
                coalesce(files.host_path, files.path),
                '^(/var/lib/kubelet/pods/([^/]+)/volumes/([^/]+)/([^/]+))/',
                ['directory', 'pod_uid', 'plugin', 'volume']
            ) AS place
        FROM by_file JOIN files USING (file_id)
    ) AS found
    WHERE place.plugin <> ''
) AS found
LEFT JOIN (
    SELECT pod_uid, max(namespace) AS of_pod FROM containers WHERE pod_uid IS NOT NULL GROUP BY pod_uid
) AS pods USING (pod_uid)
LEFT JOIN (
    SELECT directory, max(namespace) AS namespace, max(claim) AS claim FROM volume_claims GROUP BY directory
) AS named
    ON named.directory = found.directory AND coalesce(of_pod = named.namespace, true)
GROUP BY plugin, volume
ORDER BY total_ns DESC, plugin, volume
