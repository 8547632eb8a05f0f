-- One row a call or page fault that did something in the page cache: the columns of tables
-- syscalls and faults that tell what.
--
-- rid: The request.
-- ts_ns: When it began, CLOCK_MONOTONIC nanoseconds.
-- pid: Process (thread group) id.
-- tid: Thread id.
-- comm: Name of the thread.
-- file_id: File, in table files.
-- path: Its path.
-- pages: Pages of the file that it read through the page cache; null when it looked none up.
-- hits: Of which were there, perhaps still being read; null like pages.
-- misses: Of which were not, and had to be read; null like pages.
-- readahead_pages: Pages that were read along, ahead of what was asked for.
-- added_pages: Pages that were added without a lookup: by writes and faults.
-- dirtied: Folios (a page, or several that are kept together) that became dirty.
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
