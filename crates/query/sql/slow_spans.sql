-- One row per service, name and kind of spans, and layer: where the slowest tenth of the spans spends more
-- time than the faster half of the spans with the same name and kind. Names with fewer than ten spans of a
-- kind are left out.
--
-- service: Name of the service.
-- name: Name of the spans.
-- kind: internal, server, client, producer, consumer, or unspecified.
-- layer: As in slices; outside: the time of the spans that is in no call of theirs: page faults, the
--   application itself, waits outside of calls, and spans inside of them.
-- usual_spans: Spans in the faster half.
-- slow_spans: Spans in the slowest tenth.
-- usual_ns: Time of one of the usual spans in the layer and not in deeper layers, nanoseconds, on average.
-- slow_ns: The same of one of the slow spans.
-- more_ns: By how much the slow ones take longer there.
-- share: Fraction of the whole difference; negative where they are faster.
WITH ranked AS (
    SELECT
        trace_id, span_id, service, name, kind, dur_ns,
        row_number() OVER (PARTITION BY service, name, kind ORDER BY dur_ns, trace_id, span_id) AS rank,
        count(*) OVER (PARTITION BY service, name, kind) AS spans
    FROM spans
    WHERE dur_ns > 0
),
chosen AS (
    SELECT *, rank > spans - spans // 10 AS slow
    FROM ranked
    WHERE spans >= 10 AND (rank <= spans // 2 OR rank > spans - spans // 10)
),
counts AS (
    SELECT
        service, name, kind, count(*) FILTER (NOT slow) AS usual_spans,
        count(*) FILTER (slow) AS slow_spans
    FROM chosen
    GROUP BY service, name, kind
),
visits AS (
    SELECT trace_id, span_id, layer, sum(self_ns) AS self_ns
    FROM span_calls JOIN all_slices USING (rid)
    WHERE span_id IS NOT NULL
    GROUP BY trace_id, span_id, layer
),
parts AS (
    SELECT service, name, kind, slow, layer, self_ns
    FROM chosen JOIN visits USING (trace_id, span_id)
    UNION ALL
    SELECT service, name, kind, slow, 'outside', greatest(dur_ns - coalesce(self_ns, 0), 0)
    FROM chosen LEFT JOIN (
        SELECT trace_id, span_id, sum(self_ns) AS self_ns FROM visits GROUP BY trace_id, span_id
    ) USING (trace_id, span_id)
),
sums AS (
    SELECT
        service, name, kind, layer,
        coalesce(sum(self_ns) FILTER (NOT slow), 0) AS usual_ns,
        coalesce(sum(self_ns) FILTER (slow), 0) AS slow_ns
    FROM parts
    GROUP BY service, name, kind, layer
)
SELECT
    service, name, kind, layer, usual_spans, slow_spans,
    bounded(round(sums.usual_ns / usual_spans)) AS usual_ns,
    bounded(round(sums.slow_ns / slow_spans)) AS slow_ns,
    bounded(round(sums.slow_ns / slow_spans - sums.usual_ns / usual_spans)) AS more_ns,
    (sums.slow_ns / slow_spans - sums.usual_ns / usual_spans)
        / nullif(sum(sums.slow_ns / slow_spans - sums.usual_ns / usual_spans)
            OVER (PARTITION BY service, name, kind), 0)
        AS share
FROM sums JOIN counts USING (service, name, kind)
ORDER BY service, name, kind, more_ns DESC, layer
