-- One row per device and kind of request: stored requests of all processes on the machine.
--
-- device: Name of the device.
-- op: read, write, flush, ...
-- requests: Requests.
-- unseen: Requests whose end was not observed: in flight when the recording ended, or completed
--   while the kernel ran no programs. They have no times and no error.
-- recorded: Requests caused by a recorded request; null for flush: the block layer makes flushes
--   for several requests at once, so their causes are not known.
-- errors: Requests that failed.
-- bytes: Bytes moved.
-- queue_p50_ns: Median time from submission to the issue to the device's driver, nanoseconds.
-- queue_p99_ns: 99th percentile of that.
-- device_p50_ns: Median time in the device: from its driver to completion, nanoseconds.
-- device_p90_ns: 90th percentile of that.
-- device_p99_ns: 99th percentile of that.
-- device_max_ns: Longest time in the device, nanoseconds.
-- device_ns: Total time in the device, nanoseconds; requests overlap.
-- mean_depth: Mean number of requests in the device when one was issued, including that one.
-- max_depth: Maximum of that number.
SELECT
    device, op, requests, unseen, recorded, errors, bytes, q[1] AS queue_p50_ns, q[2] AS queue_p99_ns,
    d[1] AS device_p50_ns, d[2] AS device_p90_ns, d[3] AS device_p99_ns, device_max_ns,
    device_ns, mean_depth, max_depth
FROM (
    SELECT
        device, op, count(*) AS requests,
        count(*) FILTER (completed_at_ns IS NULL) AS unseen,
        if(op = 'flush', NULL, count(rid)) AS recorded,
        count(*) FILTER (error <> 0) AS errors, bounded(sum(bytes)) AS bytes,
        quantile_disc(issued_at_ns - queued_at_ns, [0.5, 0.99]) AS q,
        quantile_disc(completed_at_ns - issued_at_ns, [0.5, 0.9, 0.99]) AS d,
        max(completed_at_ns - issued_at_ns) AS device_max_ns,
        bounded(coalesce(sum(completed_at_ns - issued_at_ns), 0)) AS device_ns,
        avg(queue_depth) AS mean_depth, max(queue_depth) AS max_depth
    FROM block
    GROUP BY device, op
)
ORDER BY device_ns DESC, device, op
