"""Handles requests and logs each of them; the log may be rotated by others."""
import logging
import logging.handlers
import sys

if len(sys.argv) > 1:
    handler = logging.FileHandler("access.log")
else:
    handler = logging.handlers.WatchedFileHandler("access.log")
handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
log = logging.getLogger("access")
log.addHandler(handler)
log.setLevel(logging.INFO)
for n in range(60000):
    log.info("GET /item/%d 200 %d", n * 17 % 4000, n % 900)
