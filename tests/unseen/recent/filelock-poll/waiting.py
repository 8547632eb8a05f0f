"""Adds the parts of one stage to the shared manifest; the stages run at the same time."""
import fcntl
import json
import sys
import time

stage = sys.argv[1]
for part in range(40):
    time.sleep(0.005)
    with open("manifest.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open("manifest.jsonl", "a") as f:
            f.write(json.dumps({"stage": stage, "part": part, "rows": part * 1000}) + "\n")
        time.sleep(0.012)
