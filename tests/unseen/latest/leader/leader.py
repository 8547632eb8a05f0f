"""Of the schedulers of a cluster only the one that holds the lease file may start jobs."""
import fcntl
import os
import sys
import time

lease = os.open("lease", os.O_RDWR | os.O_CREAT, 0o644)
for shift in range(10):
    while True:
        try:
            fcntl.lockf(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(0.05)
    with open("shifts", "a") as log:
        log.write(sys.argv[1] + "\n")
    time.sleep(0.06)
    fcntl.lockf(lease, fcntl.LOCK_UN)
    time.sleep(0.01)
