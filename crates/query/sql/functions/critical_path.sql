-- The critical path of a request or thread, as `fathom critical-path` shows it: a row per segment, in
-- order of time. The segments are contiguous, so the sum of dur_ns is the duration of the request or
-- window. The arguments are numbers in the statement, not columns or subqueries; the path is
-- computed before the statement runs. `from_ns` and `until_ns` are points in time, like ts_ns; null
-- stands for the begin or end of the thread's recorded time. The session needs layer sched.
--
-- ts_ns: When the segment begins.
-- dur_ns: Duration of the segment, nanoseconds.
-- depth: 0 for the thread of the path itself, otherwise the number of waits that lead to this thread.
-- tid: Thread.
-- comm: Name of the thread.
-- pid: Process.
-- process: Name of the process.
-- state: running, runnable (waits for a CPU), blocked, absent (has not started or has ended), or
--   unknown.
-- reason: Why the thread was off the CPU, as in table waits; null while it runs. Of an unknown or absent
--   state: unseen_return, before_request, unseen_start, unseen_end, outside_calls, not_recorded,
--   before_start, or after_end.
-- syscall: The system call that it was in, or page_fault; null outside of recorded calls.
-- rid: The request that it was in; null outside of recorded requests.
-- path: File of the request.
-- culprit_kind: Kind of event that ended its wait: thread, block_request, timer, network, signal,
--   interrupt, or unknown; null unless it was blocked.
-- culprit: Name of the thread, device, or interrupt that ended its wait.
-- culprit_tid: Thread that ended its wait; null for other kinds.
-- block_ts_ns: The block request that it waited for: ts_ns of its row in table block.
-- block_device: Device of the block request.
-- block_op: Operation of the block request, as in table block.
-- block_bytes: Bytes of the block request.
-- block_path: File of the block request.
-- block_part: Where the block request was: queue, device, or completion (until the thread was woken).
-- because_tid: The thread whose wait leads the path to this thread; null at depth 0.
-- because_reason: Reason of that wait.
-- because_syscall: System call of that wait.
-- because_rid: Request of that wait.
CREATE SCHEMA critical_paths;
CREATE TABLE critical_paths.segments (
    of_rid BIGINT,
    of_tid BIGINT,
    of_from_ns BIGINT,
    of_until_ns BIGINT,
    ts_ns BIGINT,
    dur_ns BIGINT,
    depth BIGINT,
    tid BIGINT,
    comm VARCHAR,
    pid BIGINT,
    process VARCHAR,
    state VARCHAR,
    reason VARCHAR,
    syscall VARCHAR,
    rid BIGINT,
    path VARCHAR,
    culprit_kind VARCHAR,
    culprit VARCHAR,
    culprit_tid BIGINT,
    block_ts_ns BIGINT,
    block_device VARCHAR,
    block_op VARCHAR,
    block_bytes BIGINT,
    block_path VARCHAR,
    block_part VARCHAR,
    because_tid BIGINT,
    because_reason VARCHAR,
    because_syscall VARCHAR,
    because_rid BIGINT
);
-- A name without a table is an argument.
CREATE MACRO critical_path(rid) AS TABLE (
    SELECT s.* EXCLUDE (of_rid, of_tid, of_from_ns, of_until_ns)
    FROM critical_paths.segments AS s
    WHERE s.of_rid = rid
), (tid, from_ns, until_ns) AS TABLE (
    SELECT s.* EXCLUDE (of_rid, of_tid, of_from_ns, of_until_ns)
    FROM critical_paths.segments AS s
    WHERE s.of_tid = tid
        AND s.of_from_ns IS NOT DISTINCT FROM from_ns
        AND s.of_until_ns IS NOT DISTINCT FROM until_ns
);
