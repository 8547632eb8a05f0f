-- One row per error of a call name. Stored calls only: losses contain counts of errors without
-- names (see losses.errors).
--
-- syscall: Name of the call.
-- errno: Name of the error.
-- calls: Calls that failed with it.
-- total_ns: Total duration, nanoseconds.
-- example_path: Path of one of them; null if none has a path.
SELECT
    syscall, errno, count(*) AS calls, bounded(sum(dur_ns)) AS total_ns,
    min(coalesce(path, path_arg)) AS example_path
FROM syscalls
WHERE errno IS NOT NULL
GROUP BY syscall, errno
ORDER BY calls DESC, syscall, errno
