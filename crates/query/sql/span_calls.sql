-- One row per stored call, with the span in which it was made. Where the thread has published its span
-- (table span_contexts with state span or none), this is it, or null while none was active. Elsewhere it is
-- the innermost span of table spans that was open when the call began.
-- A span of a known thread has the calls of this thread; where spans of one thread are open at a time
-- without being parent and child (as with asynchronous tasks), the span is null. A span without a
-- thread has the calls of its process while no other span of this process is open; the span is null
-- while several are.
--
-- rid: The call.
-- ts_ns: When it was entered, CLOCK_MONOTONIC nanoseconds.
-- dur_ns: Duration of the call, nanoseconds.
-- pid: Process id.
-- tid: Thread id.
-- syscall: Name of the call.
-- path: Absolute path of its file.
-- size: Bytes requested.
-- bytes: Bytes moved.
-- trace_id: Trace of the span; null if no span is known to contain the call.
-- span_id: The span; null likewise.
-- service: Service of the span.
-- span_name: Name of the span.
-- attribution: How it is known: context, as the thread published it, also that there was none; time, as the
--   span was open; null if nothing is known.
WITH numbered AS (
    SELECT row_number() OVER (ORDER BY trace_id, span_id) AS n, *
    FROM spans
    -- A span without a duration contains nothing. Sums of larger numbers could overflow.
    WHERE pid IS NOT NULL AND dur_ns > 0
        AND ts_ns BETWEEN -(1::BIGINT << 61) AND 1::BIGINT << 61 AND dur_ns < 1::BIGINT << 61
),
-- The begin and end of each. At one time ends come first, and of two begins the longer span's.
changes AS (
    SELECT n, pid, tid, ts_ns AS at_ns, 1 AS step, -dur_ns AS rank FROM numbered
    UNION ALL
    SELECT n, pid, tid, ts_ns + dur_ns, -1, 0 FROM numbered
),
-- How many spans of the thread are open after each change; of one that is alone also its number,
-- the sum of the numbers of all that are open.
nested AS (
    SELECT
        *,
        row_number() OVER thread AS place,
        sum(step) OVER (thread ROWS UNBOUNDED PRECEDING) AS depth,
        sum(step * n) OVER (thread ROWS UNBOUNDED PRECEDING)::BIGINT AS alone
    FROM changes
    WHERE tid IS NOT NULL
    WINDOW thread AS (PARTITION BY pid, tid ORDER BY at_ns, step, rank, n)
),
-- While at most one is open, it is known which, whatever was before: an epoch begins.
epochs AS (
    SELECT
        *,
        sum(if(depth <= 1, 1, 0)) OVER (
            PARTITION BY pid, tid ORDER BY place ROWS UNBOUNDED PRECEDING
        ) AS epoch
    FROM nested
),
-- The innermost span after each change: the last one that began at this depth.
tops AS (
    SELECT
        *,
        CASE WHEN depth = 1 THEN alone ELSE last_value(CASE WHEN step = 1 THEN n END IGNORE NULLS) OVER (
            PARTITION BY pid, tid, epoch, depth ORDER BY place ROWS UNBOUNDED PRECEDING
        ) END AS top
    FROM epochs
),
-- Spans that begin inside of one that is not their parent: to which of the two a call belongs is not
-- known.
strangers AS (
    SELECT n, epoch
    FROM (SELECT *, lag(top) OVER (PARTITION BY pid, tid ORDER BY place) AS before FROM tops) AS change
    JOIN numbered AS own USING (n)
    LEFT JOIN numbered AS around ON around.n = change.before
    WHERE step = 1 AND depth > 1
        AND (around.trace_id, around.span_id) IS DISTINCT FROM (own.trace_id, own.parent_span_id)
),
of_threads AS (
    SELECT
        pid, tid, at_ns, depth,
        -- A span that has ended is no longer the innermost one: its child goes on.
        CASE WHEN strangers = 0 AND ended_at_ns > at_ns THEN top END AS n
    FROM (
        SELECT
            tops.*,
            sum(if(strangers.n IS NULL, 0, step)) OVER (
                PARTITION BY pid, tid, epoch ORDER BY place ROWS UNBOUNDED PRECEDING
            ) AS strangers
        FROM tops LEFT JOIN strangers USING (n, epoch)
    )
    LEFT JOIN (SELECT n AS top, ts_ns + dur_ns AS ended_at_ns FROM numbered) USING (top)
    QUALIFY row_number() OVER (PARTITION BY pid, tid, at_ns ORDER BY place DESC) = 1
),
-- The only open span of a process: the sum of the numbers of all open ones.
of_processes AS (
    SELECT pid, at_ns, CASE WHEN open = 1 AND span.tid IS NULL THEN span.n END AS n
    FROM (
        SELECT
            pid, at_ns,
            sum(sum(step)) OVER process AS open,
            sum(sum(step * n)) OVER process AS n
        FROM changes
        GROUP BY pid, at_ns
        WINDOW process AS (PARTITION BY pid ORDER BY at_ns ROWS UNBOUNDED PRECEDING)
    ) AS change
    LEFT JOIN numbered AS span USING (n, pid)
),
contexts AS (
    -- Of operations of io_uring and AIO no context is recorded.
    SELECT
        x.pid, x.tid, 'syscall' AS api, x.ts_ns AS at_ns, x.state IN ('span', 'none') AS known,
        x.trace_id, x.span_id, s.service, s.name
    FROM span_contexts AS x LEFT JOIN spans AS s USING (trace_id, span_id)
)
SELECT
    c.rid, c.ts_ns, c.dur_ns, c.pid, c.tid, c.syscall, c.path, c.size, c.bytes,
    CASE WHEN x.known THEN x.trace_id ELSE s.trace_id END AS trace_id,
    CASE WHEN x.known THEN x.span_id ELSE s.span_id END AS span_id,
    CASE WHEN x.known THEN x.service ELSE s.service END AS service,
    CASE WHEN x.known THEN x.name ELSE s.name END AS span_name,
    CASE WHEN x.known THEN 'context' WHEN s.n IS NOT NULL THEN 'time' END AS attribution
FROM syscalls AS c
ASOF LEFT JOIN contexts AS x
    ON c.pid = x.pid AND c.tid = x.tid AND c.api = x.api AND c.ts_ns >= x.at_ns
ASOF LEFT JOIN of_threads AS t ON c.pid = t.pid AND c.tid = t.tid AND c.ts_ns >= t.at_ns
ASOF LEFT JOIN of_processes AS p ON c.pid = p.pid AND c.ts_ns >= p.at_ns
LEFT JOIN numbered AS s ON s.n = CASE WHEN t.depth > 0 THEN t.n ELSE p.n END
