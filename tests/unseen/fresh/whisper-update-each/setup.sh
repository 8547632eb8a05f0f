/usr/bin/python3 - <<'P'
import os, whisper
os.mkdir("metrics")
for n in range(40):
    whisper.create(f"metrics/host{n}.wsp", [(1, 86400), (60, 10080)])
P
