"""Measurements of a day go into a directory of the day, one part per station; then the station may forget them."""
import os
import random
import time


def fsync_directory(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def store(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    while data:
        data = data[os.write(fd, data) :]
    os.fsync(fd)
    os.close(fd)


r = random.Random(3)
os.mkdir("archive")
fsync_directory(".")
acknowledged = 0
for day in range(1, 29):
    directory = f"archive/2024-02-{day:02}"
    os.mkdir(directory)
    for station in range(6):
        store(f"{directory}/station{station}", r.randbytes(300_000))
    fsync_directory(directory)
    acknowledged += 6
    time.sleep(0.03)
print(acknowledged, "parts acknowledged")
