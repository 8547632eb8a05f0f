-- One row per program and file that it opened.
--
-- comm: Name of the program.
-- path: The file.
-- opens: Number of opens that succeeded.
-- total_ns: Time in these opens, nanoseconds.
-- examples: Requests of the three opens that took longest.
SELECT comm, path, count(*) AS opens, sum(dur_ns) AS total_ns,
    list(rid ORDER BY dur_ns DESC)[:3] AS examples
FROM syscalls
WHERE syscall IN ('open', 'openat', 'openat2') AND errno IS NULL
GROUP BY comm, path
