-- The queue of each device over time: one row per change, from the stored requests whose end was
-- observed.
--
-- ts_ns: Time of the change, CLOCK_MONOTONIC nanoseconds.
-- device: Name of the device.
-- waiting: Requests submitted but not issued to the device, from then on.
-- in_device: Requests in the device, from then on.
-- waiting_others: Waiting requests that no recorded request caused.
-- in_device_others: Requests in the device that no recorded request caused.
WITH ended AS (
    SELECT * FROM block WHERE issued_at_ns IS NOT NULL AND completed_at_ns IS NOT NULL
)
SELECT
    ts_ns, device,
    sum(sum(waiting)) OVER w::BIGINT AS waiting,
    sum(sum(in_device)) OVER w::BIGINT AS in_device,
    sum(coalesce(sum(waiting) FILTER (others), 0)) OVER w::BIGINT AS waiting_others,
    sum(coalesce(sum(in_device) FILTER (others), 0)) OVER w::BIGINT AS in_device_others
FROM (
    SELECT queued_at_ns AS ts_ns, device, 1 AS waiting, 0 AS in_device, rid IS NULL AS others
    FROM ended WHERE queued_at_ns IS NOT NULL
    UNION ALL
    SELECT issued_at_ns, device, if(queued_at_ns IS NULL, 0, -1), 1, rid IS NULL
    FROM ended
    UNION ALL
    SELECT completed_at_ns, device, 0, -1, rid IS NULL
    FROM ended
)
GROUP BY ts_ns, device
WINDOW w AS (PARTITION BY device ORDER BY ts_ns)
ORDER BY ts_ns, device
