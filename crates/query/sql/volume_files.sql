-- One row per file on a volume of Kubernetes: below `/var/lib/kubelet/pods/UID/volumes/PLUGIN/NAME` on the
-- host. Files that were not reached through such a directory have none. View by_volume has the sums.
--
-- file_id: The file, in table files.
-- plugin: Plugin that serves the volume, as the kubelet names it: kubernetes.io~csi.
-- volume: Its name there; of a persistent volume, the name of the PersistentVolume.
-- namespace: Namespace of its claim; null if no claim is known (record --kubernetes).
-- claim: Name of its PersistentVolumeClaim; null if no claim is known. A pod can only use claims of its own
--   namespace: where the kubelet names another one for the pod, the volume only has the name of a
--   PersistentVolume, and no claim.
SELECT
    file_id, plugin, volume,
    max(named.namespace) OVER of_volume AS namespace, max(named.claim) OVER of_volume AS claim
FROM (
    SELECT file_id, place.directory, place.pod_uid, place.plugin, place.volume
    FROM (
        SELECT
            file_id,
            regexp_extract(
                coalesce(host_path, path),
                '^(/var/lib/kubelet/pods/([^/]+)/volumes/([^/]+)/([^/]+))/',
                ['directory', 'pod_uid', 'plugin', 'volume']
            ) AS place
        FROM files
    )
    WHERE place.plugin <> ''
) AS found
LEFT JOIN (
    SELECT pod_uid, max(namespace) AS of_pod FROM containers WHERE pod_uid IS NOT NULL GROUP BY pod_uid
) AS pods USING (pod_uid)
LEFT JOIN (
    SELECT directory, max(namespace) AS namespace, max(claim) AS claim FROM volume_claims GROUP BY directory
) AS named
    ON named.directory = found.directory AND coalesce(of_pod = named.namespace, true)
WINDOW of_volume AS (PARTITION BY plugin, volume)
