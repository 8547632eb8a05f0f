"""Ships what is appended to a log with pygtail, every tenth of a second.

    shipper.py pygtail|checked LOG SHIPPED SECONDS

pygtail knows a file by its inode number. With `checked` the shipper keeps the
beginning of the file, too, and starts over when it is another one.
"""

import os
import sys
import time

from pygtail import Pygtail

how, log, shipped, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
position = log + ".offset"


def beginning(length):
    """The first bytes of the log."""
    with open(log, "rb", buffering=0) as file:
        return file.read(length)


known = b""
end = time.monotonic() + seconds
with open(shipped, "w") as out:
    while time.monotonic() < end:
        if os.path.exists(log):
            if how == "checked":
                if not beginning(len(known)) == known:
                    os.remove(position)
                    known = b""
                if len(known) < 64:
                    known = beginning(64)
            for line in Pygtail(log, offset_file=position):
                out.write(line)
            out.flush()
        time.sleep(0.1)
