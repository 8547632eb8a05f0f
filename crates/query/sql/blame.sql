-- The causes of the waits of recorded threads: one row per victim, resource, and culprit. Of each
-- resource, a nanosecond of a victim's wait has at most one culprit. Waits whose end was not seen
-- are left out. Times for a CPU take about 100 bytes of memory per wait: of recordings with several
-- million waits, raise the limit (--memory-mib).
--
-- resource: The name of a device for the time in its queue; cpu for the time in which the thread
--   could have run; otherwise the reason of the wait, as in waits.
-- kind: device, cpu, or wake_up.
-- victim_tid: Thread that waited. In the queue of a device: the thread that submitted the block
--   request, or whose request a kernel thread carried out; write-back that no call waits for and
--   readahead do not count, and times of several requests at once count once.
-- victim_comm: Its name; null if not known.
-- victim_pid: Its process; null if not known, or if several had a thread of this id.
-- victim_process: Name of the process.
-- victim_cgroup: Cgroup of the process.
-- culprit_tid: Of a device: the thread whose block request the device completed next while the
--   victim's was in the queue. Of a CPU: the recorded thread that ran on it. Otherwise: the thread
--   that ended the wait. It may be the victim itself. Null if the device completed none until it
--   took the victim's, if an interrupt ended the wait, or if it is not known.
-- culprit_comm: Its name, also of a thread that was not recorded; null if not known.
-- culprit_pid: Its process, like victim_pid.
-- culprit_process: Name of the process.
-- culprit_cgroup: Cgroup of the process.
-- time_ns: How long the victim waited, nanoseconds.
-- share: The fraction of all the victim's waits for this resource, from 0 to 1.
WITH counted AS (
    -- Only waiting in this time counts.
    SELECT -9223372036854775807 AS counted_from, 9223372036854775807 AS counted_until
),
threads AS (
    -- An id may be used again: a property is known where all its threads agree.
    SELECT
        tid, if(min(pid) = max(pid), min(pid), NULL) AS pid, arg_max(comm, started_at_ns) AS comm,
        if(min(cgroup) = max(cgroup), min(cgroup), NULL) AS cgroup
    FROM processes GROUP BY tid
),
leaders AS (
    SELECT pid, arg_max(comm, started_at_ns) AS process
    FROM processes WHERE pid = tid AND comm <> '' GROUP BY pid
),
-- Threads that submitted block requests; they may not have been recorded.
submitters AS (
    SELECT tid, if(min(pid) = max(pid), min(pid), NULL) AS pid, arg_max(comm, ts_ns) AS comm
    FROM block WHERE tid IS NOT NULL GROUP BY tid
),
-- Block requests with their threads. The first of several bios counts.
origins AS (
    SELECT
        block_id,
        arg_min(if(submit_rid IS NULL, cause_tid, tid), ts_ns) FILTER (
            WHERE origin <> 'readahead'
                AND (submit_rid IS NOT NULL OR rid IS NOT NULL AND origin <> 'writeback')
        ) AS victim_tid,
        arg_min(coalesce(cause_tid, tid), ts_ns) AS tid
    FROM bios GROUP BY block_id
),
requests AS (
    SELECT
        block.block_id, device, victim_tid, coalesce(origins.tid, block.tid) AS tid,
        coalesce(queued_at_ns, ts_ns) AS queued_ns, issued_at_ns AS issued_ns,
        completed_at_ns AS completed_ns
    FROM block LEFT JOIN origins USING (block_id)
    WHERE issued_at_ns IS NOT NULL AND completed_at_ns IS NOT NULL
),
-- Of requests of a thread that wait at the same time, the time is of the first one.
queued AS (
    SELECT
        block_id, device, victim_tid, queued_ns, issued_ns AS until_ns,
        greatest(queued_ns, coalesce(max(issued_ns) OVER (
            PARTITION BY device, victim_tid ORDER BY queued_ns, block_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), queued_ns)) AS from_ns
    FROM requests WHERE victim_tid IS NOT NULL AND issued_ns > queued_ns
),
-- In buckets of about a millisecond: comparing each with each would take hours. No request waits
-- longer than two hours, except in damaged files.
waiting AS (
    SELECT
        device, victim_tid, from_ns, until_ns, block_id,
        unnest(range(from_ns >> 20, (until_ns >> 20) + 1)) AS bucket
    FROM queued WHERE until_ns - from_ns BETWEEN 1 AND 1::BIGINT << 43
),
-- The requests that the device completed while the victim's waited, including requests that were queued
-- later and overtook it. Each has the time since the one before.
ahead AS (
    SELECT
        device, waiting.victim_tid, requests.tid AS culprit_tid,
        coalesce(lag(completed_ns) OVER (
            PARTITION BY waiting.block_id ORDER BY completed_ns, requests.block_id
        ), from_ns) AS begin_ns,
        completed_ns AS end_ns
    FROM waiting JOIN (SELECT *, completed_ns >> 20 AS bucket FROM requests) AS requests
        USING (device, bucket)
    WHERE completed_ns > from_ns AND completed_ns <= until_ns
),
device_times AS (
    SELECT
        device, victim_tid, culprit_tid,
        sum(greatest(0, least(end_ns, counted_until) - greatest(begin_ns, counted_from))) AS time_ns
    FROM ahead, counted GROUP BY ALL
),
device_waits AS (
    SELECT
        device, victim_tid,
        sum(greatest(0, least(until_ns, counted_until) - greatest(from_ns, counted_from))) AS time_ns
    FROM queued, counted GROUP BY ALL
),
-- A thread runs from the end of a wait to the beginning of its next one, if waits outside of
-- requests are recorded (column waits.state).
runs AS (
    SELECT
        cpu, tid, from_ns, until_ns,
        unnest(range(from_ns >> 20, ((until_ns - 1) >> 20) + 1)) AS bucket
    FROM (
        SELECT
            cpu, tid, ts_ns + dur_ns AS from_ns,
            lead(ts_ns) OVER (PARTITION BY tid ORDER BY ts_ns) AS until_ns
        FROM waits
    )
    WHERE cpu IS NOT NULL AND until_ns - from_ns BETWEEN 1 AND 1::BIGINT << 43
        AND EXISTS (SELECT 1 FROM waits WHERE state IS NOT NULL)
),
-- The end of each wait, in which the thread wanted a CPU.
periods AS NOT MATERIALIZED (
    SELECT
        tid, ts_ns, ts_ns + dur_ns AS until_ns, cpu, reason, waker, waker_tid,
        if(reason IN ('cpu', 'preempted'), dur_ns, least(dur_ns, coalesce(run_queue_ns, 0)))
            AS wanted_ns
    FROM waits WHERE dur_ns IS NOT NULL
),
wanted AS (
    SELECT
        cpu, tid, until_ns - wanted_ns AS from_ns, until_ns,
        unnest(range((until_ns - wanted_ns) >> 20, ((until_ns - 1) >> 20) + 1)) AS bucket
    FROM periods WHERE wanted_ns BETWEEN 1 AND 1::BIGINT << 43
),
-- A thread runs on one CPU, and a CPU runs one thread: no time is counted twice.
cpu_times AS (
    SELECT
        wanted.tid AS victim_tid, runs.tid AS culprit_tid,
        sum(greatest(
            0,
            least(wanted.until_ns, runs.until_ns, (bucket + 1) << 20, counted_until)
                - greatest(wanted.from_ns, runs.from_ns, bucket << 20, counted_from)
        )) AS time_ns
    FROM wanted JOIN runs USING (cpu, bucket) CROSS JOIN counted
    WHERE wanted.tid <> runs.tid
        AND wanted.from_ns < runs.until_ns AND wanted.until_ns > runs.from_ns
    GROUP BY ALL
),
cpu_waits AS (
    SELECT
        tid AS victim_tid,
        sum(greatest(0, least(until_ns, counted_until) - greatest(until_ns - wanted_ns, counted_from)))
            AS time_ns
    FROM periods, counted WHERE wanted_ns > 0 GROUP BY tid
),
-- Waits that an interrupt ended have no thread as culprit. They are here because the shares are of all
-- waits.
wake_ups AS (
    SELECT
        reason AS resource, tid AS victim_tid, waker_tid AS culprit_tid,
        if(waker_tid IS NULL, NULL, waker) AS culprit_comm,
        sum(greatest(0, least(until_ns - wanted_ns, counted_until) - greatest(ts_ns, counted_from)))
            AS time_ns
    FROM periods, counted
    WHERE reason NOT IN ('cpu', 'preempted')
    GROUP BY ALL
),
parts AS (
    SELECT device AS resource, 'device' AS kind, victim_tid, culprit_tid, NULL AS culprit_comm, time_ns
    FROM device_times
    UNION ALL
    SELECT
        device, 'device', victim_tid, NULL, NULL,
        device_waits.time_ns - coalesce(sum(device_times.time_ns), 0)
    FROM device_waits LEFT JOIN device_times USING (device, victim_tid)
    GROUP BY device, victim_tid, device_waits.time_ns
    UNION ALL
    SELECT 'cpu', 'cpu', victim_tid, culprit_tid, NULL, time_ns FROM cpu_times
    UNION ALL
    SELECT
        'cpu', 'cpu', victim_tid, NULL, NULL,
        cpu_waits.time_ns - coalesce(sum(cpu_times.time_ns), 0)
    FROM cpu_waits LEFT JOIN cpu_times USING (victim_tid)
    GROUP BY victim_tid, cpu_waits.time_ns
    UNION ALL
    SELECT resource, 'wake_up', victim_tid, culprit_tid, culprit_comm, time_ns FROM wake_ups
),
blamed AS (
    SELECT resource, kind, victim_tid, culprit_tid, culprit_comm, sum(time_ns) AS time_ns
    FROM parts GROUP BY ALL HAVING sum(time_ns) > 0
)
SELECT
    resource, kind, victim_tid, victims.comm AS victim_comm, victims.pid AS victim_pid,
    victim_leaders.process AS victim_process, victims.cgroup AS victim_cgroup,
    culprit_tid, coalesce(culprit_comm, culprits.comm, submitters.comm) AS culprit_comm,
    coalesce(culprits.pid, submitters.pid) AS culprit_pid,
    coalesce(culprit_leaders.process, if(submitters.pid = culprit_tid, submitters.comm, NULL))
        AS culprit_process,
    culprits.cgroup AS culprit_cgroup, bounded(time_ns) AS time_ns,
    time_ns / sum(time_ns) OVER (PARTITION BY resource, kind, victim_tid) AS share
FROM blamed
LEFT JOIN threads AS victims ON victims.tid = victim_tid
LEFT JOIN leaders AS victim_leaders ON victim_leaders.pid = victims.pid
LEFT JOIN threads AS culprits ON culprits.tid = culprit_tid
LEFT JOIN submitters ON submitters.tid = culprit_tid AND kind = 'device'
LEFT JOIN leaders AS culprit_leaders ON culprit_leaders.pid = coalesce(culprits.pid, submitters.pid)
ORDER BY time_ns DESC, resource, victim_tid, culprit_tid
