-- A program that reads its settings again and again pays for an open, a read, and a close each time.
--
-- title: {comm} opens {path} {opens} times
-- severity: medium
-- advice: Read the file once and keep its contents. Watch it with inotify(7) if it can change.
-- cost: Time in the opens after the first one.
SELECT comm, path, opens, total_ns AS open_ns,
    total_ns * (opens - 1) // opens AS cost_ns, examples
FROM file_opens
WHERE opens > 100 AND path LIKE '/etc/%' AND path NOT LIKE '/etc/ld.so.%'
