"""Polls the mailboxes and keeps in its state file which message each of them had last."""
import json
import os
import random
import time


class State:
    def __init__(self, path):
        self.file = open(path, "w")
        self.last = {}

    def save(self):
        self.file.truncate(0)
        self.file.write(json.dumps(self.last, indent=1))
        self.file.flush()
        os.fsync(self.file.fileno())


state = State("poller.state")
r = random.Random(11)
for tick in range(80):
    for box in r.sample(range(40), 6):
        state.last[f"box{box}"] = {"uid": tick * 10 + box, "seen": tick}
    state.save()
    time.sleep(0.02)
print(os.path.getsize("poller.state"), "bytes of state")
