-- One row a layer and what it did there: where the time of all stored requests went.
--
-- layer: As in slices.
-- name: Name of the call, of the part of the file system, of the device, of the interrupt;
--   why the thread was off the CPU.
-- requests: Requests that were there.
-- visits: How often.
-- self_ns: Time that was spent there and nowhere deeper, nanoseconds. All rows add up to the
--   durations of all requests.
-- share: Part of that, of 1.
-- max_ns: Longest visit, nanoseconds.
SELECT
    layer, name, count(DISTINCT rid) AS requests, count(*) AS visits,
    bounded(sum(self_ns)) AS self_ns,
    sum(self_ns) / nullif(sum(sum(self_ns)) OVER (), 0) AS share,
    max(dur_ns) AS max_ns
FROM all_slices
GROUP BY layer, name
ORDER BY self_ns DESC, layer, name
