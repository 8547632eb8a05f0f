-- Everything that took place, over all layers that were recorded.
--
-- ts_ns: When it began, CLOCK_MONOTONIC nanoseconds.
-- dur_ns: How long it took, nanoseconds; null when it was not measured.
-- layer: syscall or pagecache.
-- name: Name of the call, page_fault or writeback.
-- tid: Thread.
-- rid: Id of the request, in table syscalls, faults or writeback.
SELECT ts_ns, dur_ns, 'syscall' AS layer, syscall AS name, tid, rid
FROM syscalls
UNION ALL
SELECT ts_ns, dur_ns, 'pagecache', 'page_fault', tid, rid
FROM faults
UNION ALL
SELECT ts_ns, NULL, 'pagecache', 'writeback', tid, rid
FROM writeback
