-- The database must not be on storage that other machines share.
--
-- title: {comm} writes {written_bytes} to {path}, which is on {fs_type}
-- group: correctness
-- severity: high
-- advice: Move the file to a local file system. Locks and syncs on {fs_type} do not protect it when
--   a machine fails.
SELECT s.comm, s.path, f.fs_type, sum(s.bytes) AS written_bytes, count(*) AS writes,
    list(s.rid ORDER BY s.ts_ns)[:3] AS examples
FROM syscalls AS s JOIN files AS f USING (file_id)
WHERE call_writes(s.syscall) AND s.bytes > 0
    AND f.fs_type IN ('nfs', 'nfs4', 'cifs', 'fuse') AND s.path SIMILAR TO '.*\.(db|sqlite)'
GROUP BY ALL
