-- The latency histogram of each call name, in powers of two: one row a bucket that is
-- not empty. Lost calls are included; the counts are exact.
--
-- syscall: Name of the call.
-- bucket: Power of two where the bucket begins, 0 to 39; the last takes all above.
-- from_ns: Shortest duration in the bucket, nanoseconds (bucket 0: from 0).
-- below_ns: Where the next bucket begins; null for the last.
-- calls: Calls: stored ones, lost ones and counted ones (table counters).
-- lost: Of which are not in table syscalls.
SELECT
    syscall, bucket,
    CASE WHEN bucket = 0 THEN 0 ELSE 1::BIGINT << bucket END AS from_ns,
    CASE WHEN bucket < 39 THEN 1::BIGINT << (bucket + 1) END AS below_ns,
    sum(calls)::BIGINT AS calls, sum(lost)::BIGINT AS lost
FROM (
    -- duration_bucket() without its limits, which are applied to a few groups instead of
    -- to each call. Negative numbers have 64 digits.
    SELECT
        syscall,
        CASE WHEN digits IS NULL THEN NULL WHEN digits > 63 THEN 0
            ELSE least(39, digits - 1) END::INTEGER AS bucket,
        calls, 0 AS lost
    FROM (
        SELECT syscall, length(bin(dur_ns)) AS digits, count(*) AS calls
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
