"""Saves a document again and again, in one of several ways.

    save.py rewrite|rename|safe DIRECTORY TIMES

`rewrite` and `rename` are what most programs do; only `safe` is sure to leave either
the old or the new document when the machine stops.
"""

import json
import os
import sys
import tempfile

how, directory, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
path = os.path.join(directory, "settings.json")


def rewrite(text):
    with open(path, "w") as file:
        file.write(text)


def rename(text):
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)


def safe(text):
    with tempfile.NamedTemporaryFile("w", dir=directory, delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


save = {"rewrite": rewrite, "rename": rename, "safe": safe}[how]
for number in range(times):
    save(json.dumps({"number": number, "text": "x" * 5000}))
