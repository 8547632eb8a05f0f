"""Takes what the agents of forty hosts collected in the last ten minutes into the metrics files."""
import sys
import time
import whisper

now = int(time.time())
for host in range(40):
    points = [(now - 600 + s, (host * 31 + s * 17) % 1000 / 10) for s in range(600)]
    path = f"metrics/host{host}.wsp"
    if sys.argv[1:] == ["many"]:
        whisper.update_many(path, points)
    else:
        for at, value in points:
            whisper.update(path, value, at)
print(sum(v is not None for v in whisper.fetch("metrics/host7.wsp", now - 300)[1]), "values")
