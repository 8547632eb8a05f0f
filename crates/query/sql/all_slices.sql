-- Where the time of every request was spent: table slices, plus one row for the call itself of each
-- request without slices. Includes operations of io_uring and AIO, which end while their threads do
-- other work.
--
-- rid: The request.
-- layer: As in slices.
-- name: As in slices.
-- ts_ns: When the visit started, CLOCK_MONOTONIC nanoseconds.
-- dur_ns: Duration, nanoseconds.
-- self_ns: The part of dur_ns that was not spent in deeper visits, nanoseconds.
-- depth: 0 for the request itself.
SELECT rid, layer, name, ts_ns, dur_ns, self_ns, depth FROM slices
UNION ALL
SELECT rid, 'syscall', syscall, ts_ns, dur_ns, dur_ns, 0
FROM syscalls ANTI JOIN slices USING (rid)
UNION ALL
SELECT rid, 'pagecache', 'page_fault', ts_ns, dur_ns, dur_ns, 0
FROM faults ANTI JOIN slices USING (rid)
WHERE dur_ns IS NOT NULL
