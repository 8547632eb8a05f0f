-- Everything that took place, over all layers that were recorded.
--
-- ts_ns: When it began, CLOCK_MONOTONIC nanoseconds.
-- dur_ns: How long it took, nanoseconds.
-- layer: syscall.
-- name: Name of the call.
-- tid: Thread.
-- rid: Id of the request, in table syscalls.
SELECT ts_ns, dur_ns, 'syscall' AS layer, syscall AS name, tid, rid
FROM syscalls
