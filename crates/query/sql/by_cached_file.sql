-- One row per file: how well the page cache served it.
--
-- file_id: The file, in table files.
-- path: Its path, the latest known one.
-- reads: Requests that looked pages up.
-- pages: Pages that they read through the page cache.
-- hits: Pages that were present, possibly still being read.
-- misses: Pages that had to be read.
-- hit_ratio: hits / pages, from 0 to 1; null without lookups.
-- readahead_pages: Pages that the kernel read ahead of the requests.
-- added_pages: Pages added by writes and faults.
-- dirtied: Folios that became dirty.
SELECT
    file_id, path, reads, pages, hits, misses, hits / nullif(pages, 0) AS hit_ratio,
    readahead_pages, added_pages, dirtied
FROM (
    SELECT
        file_id, count(pages) AS reads, bounded(coalesce(sum(pages), 0)) AS pages,
        bounded(coalesce(sum(hits), 0)) AS hits, bounded(coalesce(sum(misses), 0)) AS misses,
        bounded(sum(readahead_pages)) AS readahead_pages, bounded(sum(added_pages)) AS added_pages,
        bounded(sum(dirtied)) AS dirtied
    FROM pagecache
    GROUP BY file_id
)
LEFT JOIN (SELECT file_id, path FROM files) USING (file_id)
ORDER BY misses DESC, pages DESC, file_id
