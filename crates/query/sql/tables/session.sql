-- One row: what the session says of itself.
--
-- id: Random id of the session.
-- state: complete, or recording: being written, or its recorder was killed.
-- command: Command that was traced, quoted for a shell; null when running targets were.
-- target: What was recorded, in words.
-- exit_status: Exit status of the command; null when it is not known.
-- host: Name of the machine.
-- kernel: Release and version of its kernel.
-- arch: Architecture.
-- distribution: Name of the distribution.
-- cpus: Processors online.
-- memory_bytes: Memory.
-- start_time: When the recording began, UTC.
-- end_time: When it ended, UTC; null when the state is recording.
-- started_at_ns: When it began, CLOCK_MONOTONIC nanoseconds.
-- ended_at_ns: When it ended, CLOCK_MONOTONIC nanoseconds; null when the state is recording.
-- duration_ns: From started_at_ns to ended_at_ns.
-- seen: Calls that passed the filters in the kernel: stored and lost ones, and those in
--   table counters, those dropped by --keep, and those that a killed recorder had not stored.
--   While the session is recorded, those that have arrived in it.
-- stored: Rows written to table syscalls.
-- lost: Calls in table losses.
-- compat: Calls by 32-bit programs, where those are not recorded (arm64); not in seen.
-- detail: counters, raw, fds or full.
-- calls: Selection of calls as given, separated by commas.
-- content: none, hash or plain: what was kept of the bytes that calls moved.
-- content_max_bytes: Bytes of a call that were taken for it at most; null when none were.
-- filters: Filters as on the command line, separated by blanks.
-- ring_mib: Memory of the slot ring of one CPU, MiB.
-- probe_ns_per_call: Nanoseconds that the probes take a call; null when not measured.
-- recorder_cpu_ns: CPU time of the recorder; null when not measured.
-- target_cpu_ns: CPU time of the recorded program; null when not known.
-- recorder_peak_rss_bytes: Peak of the recorder's resident memory; null when not measured.
-- recorder_limit_bytes: What that stays below whatever is recorded; null when not known.
-- fathom_version: Version of the fathom that wrote it.
CREATE TABLE session (
    id VARCHAR,
    state VARCHAR,
    command VARCHAR,
    target VARCHAR,
    exit_status INTEGER,
    host VARCHAR,
    kernel VARCHAR,
    arch VARCHAR,
    distribution VARCHAR,
    cpus BIGINT,
    memory_bytes BIGINT,
    start_time TIMESTAMP_NS,
    end_time TIMESTAMP_NS,
    started_at_ns BIGINT,
    ended_at_ns BIGINT,
    duration_ns BIGINT,
    seen BIGINT,
    stored BIGINT,
    lost BIGINT,
    compat BIGINT,
    detail VARCHAR,
    calls VARCHAR,
    content VARCHAR,
    content_max_bytes BIGINT,
    filters VARCHAR,
    ring_mib BIGINT,
    probe_ns_per_call DOUBLE,
    recorder_cpu_ns BIGINT,
    target_cpu_ns BIGINT,
    recorder_peak_rss_bytes BIGINT,
    recorder_limit_bytes BIGINT,
    fathom_version VARCHAR
)
