"""Ships what is appended to a log with pygtail, every tenth of a second, until LOG.end exists.

    shipper.py pygtail|checked LOG SHIPPED

pygtail knows a file by its inode number. With `checked` the shipper keeps the
beginning of the file, too, and starts over when it is another one.
"""

import os
import sys
import time

from pygtail import Pygtail

how, log, shipped = sys.argv[1:]
position = log + ".offset"


def beginning(length):
    """The first bytes of the log."""
    with open(log, "rb", buffering=0) as file:
        return file.read(length)


known = b""


def ship(out):
    """Appends what is new in the log to a file."""
    global known
    if how == "checked":
        if not beginning(len(known)) == known:
            os.remove(position)
            known = b""
        if len(known) < 64:
            known = beginning(64)
    for line in Pygtail(log, offset_file=position):
        out.write(line)
    out.flush()


with open(shipped, "w") as out:
    ended = False
    while not ended:
        ended = os.path.exists(log + ".end")
        try:
            ship(out)
        except FileNotFoundError:
            # The application has not begun its log, or is about to replace it.
            pass
        time.sleep(0.1)
