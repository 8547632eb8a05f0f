-- The latency histogram of each call name, in powers of two: one row per bucket that is not empty.
-- Lost calls are included; the counts are exact.
--
-- syscall: Name of the call.
-- bucket: Power of two where the bucket starts, 0 to 39; the last one has no upper end.
-- from_ns: Shortest duration in the bucket, nanoseconds (bucket 0: from 0).
-- below_ns: Where the next bucket starts; null for the last.
-- calls: Calls: stored, lost, and counted ones (table counters).
-- lost: Calls that are not in table syscalls.
SELECT
    syscall, bucket,
    CASE WHEN bucket = 0 THEN 0 ELSE 1::BIGINT << bucket END AS from_ns,
    CASE WHEN bucket < 39 THEN 1::BIGINT << (bucket + 1) END AS below_ns,
    bounded(sum(calls)) AS calls, bounded(sum(lost)) AS lost
FROM (
    -- The bucket of each step instead of each call's bucket: there are few steps.
    SELECT syscall, duration_bucket(step) AS bucket, calls, 0 AS lost
    FROM (
        SELECT syscall, duration_step(dur_ns) AS step, count(*) AS calls
        FROM syscalls
        GROUP BY 1, 2
    )
    UNION ALL
    SELECT syscall, bucket, sum(count), coalesce(sum(count) FILTER (is_lost), 0)
    FROM (
        SELECT
            syscall, lost > 0 AS is_lost, unnest(hist) AS count,
            (generate_subscripts(hist, 1) - 1)::INTEGER AS bucket
        FROM unstored
    )
    WHERE count > 0
    GROUP BY 1, 2
)
GROUP BY syscall, bucket
ORDER BY syscall, bucket
