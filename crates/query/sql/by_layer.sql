-- One row per layer and activity: where the time of all stored requests was spent.
--
-- layer: As in slices.
-- name: Name of the call, the file system's operation, the device, or the interrupt, or the reason
--   for being off the CPU.
-- requests: Requests that visited it.
-- visits: Number of visits.
-- self_ns: Time spent there but not in deeper layers, nanoseconds. All rows add up to the durations
--   of all requests.
-- share: Fraction of the total, from 0 to 1.
-- p50_ns: Median duration of a visit, with the deeper layers, nanoseconds.
-- p99_ns: 99th percentile.
-- max_ns: Longest visit, nanoseconds.
SELECT
    layer, name, count(DISTINCT rid) AS requests, count(*) AS visits,
    bounded(sum(self_ns)) AS self_ns,
    sum(self_ns) / nullif(sum(sum(self_ns)) OVER (), 0) AS share,
    quantile_disc(dur_ns, 0.5) AS p50_ns,
    quantile_disc(dur_ns, 0.99) AS p99_ns,
    max(dur_ns) AS max_ns
FROM all_slices
GROUP BY layer, name
ORDER BY self_ns DESC, layer, name
