//! Spans of applications: their names with sums, the slowest of a name, one of them with its calls.

use super::{Kind, Question};

/// With `all`, a call counts for the spans around its innermost one, too.
const COUNTING: (&str, Kind) = ("counting", Kind::Choice(&["all", "own"]));
const TRACE: (&str, Kind) = ("trace", Kind::Text);
const SPAN: (&str, Kind) = ("span", Kind::Text);

pub(super) const QUESTIONS: &[Question] = &[
    Question {
        name: "spans",
        about: "names of the spans that began in the window, with the calls in them: a row per name and layer",
        takes: &[COUNTING],
        rows: 10_000,
        sql: || {
            let chosen = "SELECT *, dense_rank() OVER (ORDER BY service, name, kind) AS n FROM spans \
                 WHERE ts_ns >= $from AND ts_ns < $to";
            let names = "names AS (
    SELECT n, service, name, kind, count(*) AS spans, count(*) FILTER (status = 'error') AS errors,
        bounded(sum(dur_ns)) AS total_ns, quantile_disc(dur_ns, 0.5) AS p50_ns,
        quantile_disc(dur_ns, 0.99) AS p99_ns, max(dur_ns) AS max_ns
    FROM chosen GROUP BY ALL
)
SELECT names.*, c.calls, c.calls_ns, c.bytes, d.device_bytes, l.layer, l.self_ns FROM names";
            let order = "ORDER BY total_ns DESC, n, self_ns DESC, layer";
            with_calls(chosen, &format!(",\n{names}"), order)
        },
    },
    Question {
        name: "slowest-spans",
        about: "the 50 longest spans of a name that began in the window, and span `span` of trace `trace` if it is one: a row \
                per span and layer",
        takes: &[
            COUNTING,
            ("service", Kind::Text),
            ("name", Kind::Text),
            ("kind", Kind::Text),
            TRACE,
            SPAN,
        ],
        rows: 10_000,
        sql: || {
            let chosen = "SELECT *, row_number() OVER (ORDER BY dur_ns DESC, trace_id, span_id) AS n FROM spans
    WHERE ts_ns >= $from AND ts_ns < $to AND dur_ns IS NOT NULL AND service IS NOT DISTINCT FROM $service
        AND name IS NOT DISTINCT FROM $name AND kind = $kind
    QUALIFY n <= 50 OR (trace_id = $trace AND span_id = $span)";
            let spans = "\nSELECT n, names.trace_id, names.span_id, names.ts_ns - $start AS t, names.dur_ns AS dur, names.pid,
    names.tid, names.status = 'error' AS failed, names.status_message, c.calls, c.calls_ns, c.bytes, d.device_bytes,
    l.layer, l.self_ns
FROM chosen AS names";
            with_calls(chosen, spans, "ORDER BY n, l.self_ns DESC, l.layer")
        },
    },
    Question {
        name: "trace",
        about: "the spans of trace `trace`, at most 500",
        takes: &[TRACE],
        rows: 500,
        sql: || {
            "SELECT span_id, parent_span_id, service, name, kind, ts_ns - $start AS t, dur_ns AS dur,
    status = 'error' AS failed
FROM spans WHERE trace_id = $trace AND dur_ns IS NOT NULL ORDER BY ts_ns, dur_ns DESC, span_id LIMIT 500"
                .to_owned()
        },
    },
    Question {
        name: "span-calls",
        about: "the calls in span `span` of trace `trace`, the 500 longest; `calls` is the number of all",
        takes: &[COUNTING, TRACE, SPAN],
        rows: 500,
        sql: || {
            let around = around("trace_id = $trace");
            format!(
                "WITH RECURSIVE {around}
SELECT c.rid, c.ts_ns - $start AS t, c.dur_ns AS dur, c.syscall, c.path, c.bytes, c.span_name,
    count(*) OVER () AS calls
FROM span_calls AS c JOIN around AS a USING (trace_id, span_id)
WHERE a.top = $span
ORDER BY c.dur_ns DESC, c.rid LIMIT 500"
            )
        },
    },
    Question {
        name: "thread-spans",
        about: "the spans of threads `tids` that were open in the window, the 4,000 longest",
        takes: &[("tids", Kind::Numbers)],
        rows: 4_000,
        sql: || {
            "SELECT tid, trace_id, span_id, service, name, kind, ts_ns - $start AS t, dur_ns AS dur,
    status = 'error' AS failed
FROM spans WHERE tid IN ($tids) AND ts_ns < $to AND ts_ns + dur_ns >= $from
ORDER BY dur_ns DESC, trace_id, span_id LIMIT 4000"
                .to_owned()
        },
    },
];

/// Spans with themselves and the spans around them. A set: parents that go round in a circle end.
fn around(which: &str) -> String {
    format!(
        "around AS (
    SELECT trace_id, span_id, span_id AS top FROM spans WHERE {which}
    UNION
    SELECT a.trace_id, a.span_id, s.parent_span_id
    FROM around AS a JOIN spans AS s ON s.trace_id = a.trace_id AND s.span_id = a.top
    WHERE s.parent_span_id IS NOT NULL AND $counting = 'all'
)"
    )
}

/// A statement over the spans that `chosen` selects, each with a number `n`, whose `select` is followed by the sums of
/// the calls in them and their layers. A call counts once for a number, however many of its spans contain it.
fn with_calls(chosen: &str, select: &str, order: &str) -> String {
    let around = around("true");
    format!(
        "WITH RECURSIVE chosen AS (
    {chosen}
),
{around},
calls AS MATERIALIZED (
    SELECT DISTINCT s.n, c.rid, c.dur_ns, c.bytes
    FROM span_calls AS c JOIN around AS a USING (trace_id, span_id)
    JOIN chosen AS s ON s.trace_id = a.trace_id AND s.span_id = a.top
),
sums AS (
    SELECT n, count(*) AS calls, bounded(sum(dur_ns)) AS calls_ns, bounded(sum(bytes)) AS bytes
    FROM calls GROUP BY n
),
devices AS (SELECT n, bounded(sum(bios.bytes)) AS device_bytes FROM calls JOIN bios USING (rid) GROUP BY n),
layers AS (
    SELECT n, layer, bounded(sum(self_ns)) AS self_ns FROM calls JOIN all_slices USING (rid) GROUP BY n, layer
){select}
LEFT JOIN sums AS c USING (n)
LEFT JOIN devices AS d USING (n)
LEFT JOIN layers AS l USING (n)
{order}"
    )
}
