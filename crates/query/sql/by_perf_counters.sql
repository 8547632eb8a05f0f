-- One row per call name, and one for page faults on mapped files outside of calls: their perf
-- counters (record --counters). Sums and means cover the requests whose counter is known; null if
-- it is known for none.
--
-- syscall: Name of the call, as in strace; page_fault.
-- requests: Requests with counters.
-- cpi: Cycles per instruction, of the requests with both counters.
-- cache_misses_per_kib: Cache misses per KiB moved, of the requests with both numbers.
-- cycles: CPU cycles, sum.
-- mean_cycles: CPU cycles per request.
-- instructions: Instructions, sum.
-- mean_instructions: Instructions per request.
-- cache_references: Cache accesses, sum.
-- mean_cache_references: Cache accesses per request.
-- cache_misses: Cache accesses that missed, sum.
-- mean_cache_misses: Cache misses per request.
-- branch_misses: Mispredicted branches, sum.
-- mean_branch_misses: Mispredicted branches per request.
-- task_clock_ns: Time on a CPU, nanoseconds, sum.
-- mean_task_clock_ns: Time on a CPU per request, nanoseconds.
-- page_faults: Page faults, sum.
-- mean_page_faults: Page faults per request.
-- context_switches: Number of times that requests left the CPU, sum.
-- mean_context_switches: Context switches per request.
-- cpu_migrations: Number of times that they came back to another CPU, sum.
-- mean_cpu_migrations: CPU migrations per request.
SELECT
    syscall, count(*) AS requests,
    sum(cycles) FILTER (instructions IS NOT NULL)
        / nullif(sum(instructions) FILTER (cycles IS NOT NULL), 0) AS cpi,
    sum(cache_misses) FILTER (bytes IS NOT NULL)
        / nullif(sum(bytes) FILTER (cache_misses IS NOT NULL) / 1024, 0) AS cache_misses_per_kib,
    bounded(sum(cycles)) AS cycles, avg(cycles) AS mean_cycles,
    bounded(sum(instructions)) AS instructions, avg(instructions) AS mean_instructions,
    bounded(sum(cache_references)) AS cache_references, avg(cache_references) AS mean_cache_references,
    bounded(sum(cache_misses)) AS cache_misses, avg(cache_misses) AS mean_cache_misses,
    bounded(sum(branch_misses)) AS branch_misses, avg(branch_misses) AS mean_branch_misses,
    bounded(sum(task_clock_ns)) AS task_clock_ns, avg(task_clock_ns) AS mean_task_clock_ns,
    bounded(sum(page_faults)) AS page_faults, avg(page_faults) AS mean_page_faults,
    bounded(sum(context_switches)) AS context_switches, avg(context_switches) AS mean_context_switches,
    bounded(sum(cpu_migrations)) AS cpu_migrations, avg(cpu_migrations) AS mean_cpu_migrations
FROM perf_counters
INNER JOIN (
    SELECT rid, syscall, bytes, dur_ns FROM syscalls
    UNION ALL
    SELECT rid, 'page_fault', NULL, dur_ns FROM faults
) USING (rid)
GROUP BY syscall
ORDER BY sum(dur_ns) DESC, syscall
