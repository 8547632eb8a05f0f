-- All events of all recorded layers.
--
-- ts_ns: When it started, CLOCK_MONOTONIC nanoseconds.
-- dur_ns: Duration, nanoseconds; null if not measured.
-- layer: syscall, pagecache, fs, block, device, sched, or irq.
-- name: Name of the call, page_fault, writeback, the operation of a block request, the reason for
--   being off the CPU, or the interrupt.
-- tid: Thread.
-- rid: Id of the request, in table syscalls, faults, or writeback; null if no recorded request
--   caused it.
SELECT ts_ns, dur_ns, 'syscall' AS layer, syscall AS name, tid, rid
FROM syscalls
UNION ALL
SELECT ts_ns, dur_ns, 'pagecache', 'page_fault', tid, rid
FROM faults
UNION ALL
SELECT ts_ns, NULL, 'pagecache', 'writeback', tid, rid
FROM writeback
UNION ALL
SELECT coalesce(started_at_ns, queued_at_ns, ts_ns), coalesce(issued_at_ns, completed_at_ns)
    - coalesce(started_at_ns, queued_at_ns, ts_ns), 'block', op || ' ' || device, tid, rid
FROM block
UNION ALL
SELECT issued_at_ns, completed_at_ns - issued_at_ns, 'device', op || ' ' || device, tid, rid
FROM block WHERE issued_at_ns IS NOT NULL
UNION ALL
SELECT ts_ns, dur_ns, 'sched', reason, tid, rid
FROM waits
UNION ALL
SELECT ts_ns, dur_ns, 'irq', kind || ' ' || name, tid, rid
FROM irqs
UNION ALL
SELECT s.ts_ns, s.dur_ns, 'fs', s.name, y.tid, s.rid
FROM slices s JOIN syscalls y USING (rid) WHERE s.layer = 'fs'
