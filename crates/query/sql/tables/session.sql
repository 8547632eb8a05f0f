-- One row: properties and totals of the session.
--
-- id: Random id of the session.
-- state: complete, or recording: in progress, or its recorder was killed.
-- command: Recorded command, quoted for a shell; null if running processes were recorded.
-- target: The recorded target, in words.
-- exit_status: Exit status of the command; null if unknown.
-- host: Name of the machine.
-- machine_id: Id of the installation (/etc/machine-id); null if unknown.
-- boot_id: Random id of the start of its kernel; null if unknown.
-- labels: The labels of --label, as labels['KEY']; null without any.
-- kernel: Release and version of its kernel.
-- arch: Architecture.
-- distribution: Name of the distribution.
-- cpus: CPUs online.
-- memory_bytes: Memory.
-- start_time: Start of the recording, UTC.
-- end_time: End of the recording, UTC; null if the state is recording.
-- started_at_ns: Start of the recording, CLOCK_MONOTONIC nanoseconds.
-- ended_at_ns: End of the recording, CLOCK_MONOTONIC nanoseconds; null if the state is recording.
-- duration_ns: From started_at_ns to ended_at_ns.
-- seen: Calls that passed the filters in the kernel: stored calls, lost calls, calls in table
--   counters, calls dropped by --keep, and calls that a killed recorder had not stored. In a
--   session in progress, the calls that have been stored or lost so far.
-- stored: Rows written to table syscalls.
-- lost: Calls in table losses.
-- compat: Calls by 32-bit programs if they are not recorded (arm64); not included in seen.
-- detail: counters, raw, fds, or full.
-- calls: The value of --syscalls, separated by commas.
-- content: none, hash, or plain: the content stored per call.
-- content_max_bytes: Maximum number of content bytes per call; null without content.
-- filters: Filters as on the command line, separated by spaces.
-- ring_mib: Memory of the slot ring per CPU, MiB.
-- probe_ns_per_call: Probe overhead per call, nanoseconds; null if not measured.
-- recorder_cpu_ns: CPU time of the recorder; null if not measured.
-- target_cpu_ns: CPU time of the recorded program; null if unknown.
-- recorder_peak_rss_bytes: Peak of the recorder's resident memory; null if not measured.
-- recorder_limit_bytes: Upper limit of the recorder's memory; null if unknown.
-- fathom_version: Version of the fathom that wrote the session.
CREATE TABLE session (
    id VARCHAR,
    state VARCHAR,
    command VARCHAR,
    target VARCHAR,
    exit_status INTEGER,
    host VARCHAR,
    machine_id VARCHAR,
    boot_id VARCHAR,
    labels MAP(VARCHAR, VARCHAR),
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
