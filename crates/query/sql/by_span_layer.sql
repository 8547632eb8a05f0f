-- One row per service, name of spans, and layer: where the time of the stored calls in these spans was
-- spent. A call counts for its innermost span only (view span_calls).
--
-- service: Name of the service.
-- name: Name of the spans.
-- layer: As in slices.
-- calls: Calls that visited the layer.
-- self_ns: Time spent there but not in deeper layers, nanoseconds. The rows of a name add up to the
--   durations of its calls.
-- share: Fraction of the time of the calls in these spans, from 0 to 1.
SELECT
    service, span_name AS name, layer, count(DISTINCT rid) AS calls,
    bounded(sum(self_ns)) AS self_ns,
    sum(self_ns) / nullif(sum(sum(self_ns)) OVER (PARTITION BY service, span_name), 0) AS share
FROM span_calls JOIN all_slices USING (rid)
WHERE span_id IS NOT NULL
GROUP BY service, span_name, layer
ORDER BY service, name, self_ns DESC, layer
