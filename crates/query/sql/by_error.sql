-- One row an error of a call name. Stored calls only: losses count errors without
-- their names (see losses.errors).
--
-- syscall: Name of the call.
-- errno: Name of the error.
-- calls: Calls that failed with it.
-- total_ns: Sum of their durations, nanoseconds.
-- example_path: Path of one of them; null when none has one.
SELECT
    syscall, errno, count(*) AS calls, bounded(sum(dur_ns)) AS total_ns,
    min(coalesce(path, path_arg)) AS example_path
FROM syscalls
WHERE errno IS NOT NULL
GROUP BY syscall, errno
ORDER BY calls DESC, syscall, errno
