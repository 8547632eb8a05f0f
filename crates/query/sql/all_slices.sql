-- Where the time of every request went: table slices, and for requests below whose call
-- nothing was seen one row for the call itself. Operations of io_uring and AIO included;
-- those end while their threads do something else.
--
-- rid: The request.
-- layer: As in slices.
-- name: As in slices.
-- ts_ns: When the visit began, CLOCK_MONOTONIC nanoseconds.
-- dur_ns: How long it took, nanoseconds.
-- self_ns: Without the layers that took the time meanwhile, nanoseconds.
-- depth: 0 for the request itself.
SELECT rid, layer, name, ts_ns, dur_ns, self_ns, depth FROM slices
UNION ALL
SELECT rid, 'syscall', syscall, ts_ns, dur_ns, dur_ns, 0
FROM syscalls ANTI JOIN slices USING (rid)
UNION ALL
SELECT rid, 'pagecache', 'page_fault', ts_ns, dur_ns, dur_ns, 0
FROM faults ANTI JOIN slices USING (rid)
WHERE dur_ns IS NOT NULL
