-- The files that programs opened most often.
--
-- title: Files opened most often
-- draw: bar
-- x: path
-- y: opens
-- series: comm
SELECT path, comm, opens FROM file_opens ORDER BY opens DESC LIMIT 20
