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
-- max_ns: Longest visit, nanoseconds.
SELECT
    layer, name, count(DISTINCT rid) AS requests, count(*) AS visits,
    bounded(sum(self_ns)) AS self_ns,
    sum(self_ns) / nullif(sum(sum(self_ns)) OVER (), 0) AS share,
    max(dur_ns) AS max_ns
FROM all_slices
GROUP BY layer, name
ORDER BY self_ns DESC, layer, name
