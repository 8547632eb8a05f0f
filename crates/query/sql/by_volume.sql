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
    any_value(namespace) AS namespace, any_value(claim) AS claim,
    count(*) AS files,
    bounded(sum(calls)) AS calls,
    bounded(sum(lost)) AS lost,
    bounded(sum(errors)) AS errors,
    bounded(sum(bytes)) AS bytes,
    bounded(sum(read_bytes)) AS read_bytes,
    bounded(sum(written_bytes)) AS written_bytes,
    bounded(sum(total_ns)) AS total_ns,
    max(max_ns) AS max_ns
FROM by_file JOIN volume_files USING (file_id)
GROUP BY plugin, volume
ORDER BY total_ns DESC, plugin, volume
