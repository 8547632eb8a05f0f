"""Page hit statistics of a small web server with four worker processes."""
import json, os, random, sys, time

PATH = "hits.json"

def hit(page):
    try:
        with open(PATH) as f:
            hits = json.load(f)
    except (FileNotFoundError, ValueError):
        hits = {}
    hits[page] = hits.get(page, 0) + 1
    with open(PATH, "w") as f:
        json.dump(hits, f)

def worker(n):
    rnd = random.Random(n)
    for _ in range(300):
        hit("/page/%d" % rnd.randrange(40))
        time.sleep(0.002)

pids = []
for n in range(4):
    pid = os.fork()
    if pid == 0:
        worker(n)
        os._exit(0)
    pids.append(pid)
for pid in pids:
    os.waitpid(pid, 0)
with open(PATH) as f:
    print("hits counted:", sum(json.load(f).values()))
