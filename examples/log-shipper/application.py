"""An application and its log: 26 bytes, then the log is removed and a new one is begun,
with 16 bytes first, more later.

    application.py LOG
"""

import os
import sys
import time

log = sys.argv[1]


def write(event):
    """Appends a line to the log."""
    with open(log, "a") as file:
        file.write(event + "\n")


def wait(seconds=1.0):
    """Gives the shipper time, from when it has begun to ship."""
    while not os.path.exists(log + ".offset"):
        time.sleep(0.1)
    time.sleep(seconds)


write("the 26 bytes of event one")
wait()
old = os.stat(log).st_ino
# The new file takes the number of the old one, unless another program is faster.
for _ in range(50):
    os.remove(log)
    with open(log, "x"):
        pass
    if os.stat(log).st_ino == old:
        break
    with open(log + ".other", "w"):
        pass
if os.path.exists(log + ".other"):
    os.remove(log + ".other")
write("16 bytes: event")
wait()
write("the 26 bytes of event six")
wait()
# The shipper ends when this is there.
with open(log + ".end", "x"):
    pass
