-- One row per service, name and kind of spans, and layer: where the time of the stored calls in these
-- spans was spent. A call counts for its innermost span only (view span_calls).
--
-- service: Name of the service.
-- name: Name of the spans.
-- kind: internal, server, client, producer, consumer, or unspecified.
-- layer: As in slices.
-- calls: Calls that visited the layer.
-- self_ns: Time spent there but not in deeper layers, nanoseconds. The rows of a name and kind add
--   up to the durations of their calls.
-- share: Fraction of the time of the calls in these spans, from 0 to 1.
WITH kinds AS (
    SELECT trace_id, span_id, kind FROM spans
)
SELECT
    service, span_name AS name, kind, layer, count(DISTINCT rid) AS calls,
    bounded(sum(self_ns)) AS self_ns,
    sum(self_ns) / nullif(sum(sum(self_ns)) OVER (PARTITION BY service, span_name, kind), 0) AS share
FROM span_calls JOIN all_slices USING (rid) LEFT JOIN kinds USING (trace_id, span_id)
WHERE span_id IS NOT NULL
GROUP BY service, span_name, kind, layer
ORDER BY service, span_name, kind, self_ns DESC, layer
