-- One row per call or page fault with activity in the page cache: the page cache columns of tables
-- syscalls and faults.
--
-- rid: The request.
-- ts_ns: When it started, CLOCK_MONOTONIC nanoseconds.
-- pid: Process (thread group) id.
-- tid: Thread id.
-- comm: Name of the thread.
-- file_id: File, in table files.
-- path: Its path.
-- pages: Pages of the file that it read through the page cache; null if it looked up none.
-- hits: Pages that were present, possibly still being read; null like pages.
-- misses: Pages that were missing and had to be read; null like pages.
-- readahead_pages: Pages that the kernel read ahead of the request.
-- added_pages: Pages added without a lookup: by writes and faults.
-- dirtied: Folios (one page, or several that the kernel manages together) that became dirty.
--
-- journal_handles: Changes to metadata that joined a transaction of jbd2 (ext4).
SELECT
    rid, ts_ns, pid, tid, comm, file_id, path,
    cache_pages::BIGINT AS pages, (cache_pages - cache_misses)::BIGINT AS hits,
    cache_misses::BIGINT AS misses, readahead_pages::BIGINT AS readahead_pages,
    added_pages::BIGINT AS added_pages, dirtied::BIGINT AS dirtied,
    journal_handles::BIGINT AS journal_handles
FROM syscalls
WHERE added_pages IS NOT NULL
UNION ALL
SELECT
    rid, ts_ns, pid, tid, comm, file_id, path, NULL, NULL, NULL, 0,
    added_pages::BIGINT, dirtied::BIGINT, journal_handles::BIGINT
FROM faults
WHERE added_pages IS NOT NULL
