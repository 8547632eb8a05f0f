-- One row a call name, and one for page faults on mapped files outside of calls: what counters
-- of perf say of them (record --counters). Sums and means are of the requests of which the
-- counter is known; null when it is known of none.
--
-- syscall: Name of the call, as in strace; page_fault.
-- requests: Requests with counters.
-- cpi: Cycles an instruction, of the requests of which both are known.
-- cache_misses_per_kib: Cache misses a KiB that was moved, of the requests of which both are known.
-- cycles: Cycles of the processor, sum.
-- mean_cycles: The same a request.
-- instructions: Instructions, sum.
-- mean_instructions: The same a request.
-- cache_references: Accesses to the cache, sum.
-- mean_cache_references: The same a request.
-- cache_misses: Of which found nothing there, sum.
-- mean_cache_misses: The same a request.
-- branch_misses: Branches predicted wrong, sum.
-- mean_branch_misses: The same a request.
-- task_clock_ns: Time on a CPU, nanoseconds, sum.
-- mean_task_clock_ns: The same a request.
-- page_faults: Page faults, sum.
-- mean_page_faults: The same a request.
-- context_switches: Times that requests left the CPU, sum.
-- mean_context_switches: The same a request.
-- cpu_migrations: Times that they came back to another, sum.
-- mean_cpu_migrations: The same a request.
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
