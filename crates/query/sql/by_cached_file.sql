-- One row a file: how well the page cache served it.
--
-- file_id: The file, in table files.
-- path: Its path, the latest known.
-- reads: Requests that looked pages up.
-- pages: Pages that they read through the page cache.
-- hits: Of which were there, perhaps still being read.
-- misses: Of which had to be read.
-- hit_ratio: Part of the pages that were there, of 1; null when none was looked up.
-- readahead_pages: Pages that were read along, ahead of what was asked for.
-- added_pages: Pages that were added by writes and faults.
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
