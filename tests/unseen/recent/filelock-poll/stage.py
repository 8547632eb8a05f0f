"""Adds the parts of one stage to the shared manifest; the stages run at the same time."""
import json
import sys
import time
from filelock import FileLock

stage = sys.argv[1]
lock = FileLock("manifest.lock")
for part in range(40):
    time.sleep(0.005)
    with lock:
        with open("manifest.jsonl", "a") as f:
            f.write(json.dumps({"stage": stage, "part": part, "rows": part * 1000}) + "\n")
        time.sleep(0.012)
