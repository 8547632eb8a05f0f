-- One row per service and name of spans, with the stored calls in them. A call counts for its innermost
-- span only (view span_calls), so the rows of all names add up to the calls in spans.
--
-- service: Name of the service.
-- name: Name of the spans.
-- kind: internal, server, client, producer, consumer, or unspecified.
-- spans: Number of spans.
-- errors: Spans with status error.
-- total_ns: Sum of the durations of the spans, nanoseconds. Spans that are known only from the contexts of
--   threads have none: null if there are no others, as are the next ones.
-- p50_ns: Median duration, nanoseconds.
-- p99_ns: 99th percentile.
-- max_ns: Longest duration.
-- calls: Calls.
-- calls_ns: Sum of the durations of the calls, nanoseconds.
-- requested_bytes: Bytes that the calls asked for.
-- bytes: Bytes that the calls moved.
-- device_bytes: Bytes that devices moved for the calls, also after their ends.
WITH inside AS MATERIALIZED (
    SELECT rid, trace_id, span_id, dur_ns, size, bytes
    FROM span_calls
    WHERE span_id IS NOT NULL
),
calls AS (
    SELECT
        trace_id, span_id, count(*) AS calls, sum(dur_ns) AS calls_ns,
        sum(greatest(size, 0)) AS requested_bytes, sum(bytes) AS bytes
    FROM inside
    GROUP BY ALL
),
devices AS (
    SELECT trace_id, span_id, sum(bios.bytes) AS device_bytes
    FROM inside JOIN bios USING (rid)
    GROUP BY ALL
)
SELECT
    service, name, kind, count(*) AS spans,
    count(*) FILTER (status = 'error') AS errors,
    bounded(sum(dur_ns)) AS total_ns,
    quantile_disc(dur_ns, 0.5) AS p50_ns,
    quantile_disc(dur_ns, 0.99) AS p99_ns,
    max(dur_ns) AS max_ns,
    bounded(coalesce(sum(calls), 0)) AS calls,
    bounded(coalesce(sum(calls_ns), 0)) AS calls_ns,
    bounded(coalesce(sum(requested_bytes), 0)) AS requested_bytes,
    bounded(coalesce(sum(bytes), 0)) AS bytes,
    bounded(coalesce(sum(device_bytes), 0)) AS device_bytes
FROM spans
LEFT JOIN calls USING (trace_id, span_id)
LEFT JOIN devices USING (trace_id, span_id)
GROUP BY service, name, kind
ORDER BY total_ns DESC, service, name, kind
