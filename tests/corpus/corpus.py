"""What the programs of the corpus share.

A program is a function that works in the current directory, an ext4 of its own. Its
setup runs before the recording begins, its helper beside it; neither is recorded.
"""

import ctypes
import os
import time

PROGRAMS = {}


def part(kind):
    def of(*names):
        def add(function):
            for name in names:
                PROGRAMS.setdefault(name, {})[kind] = function
            return function

        return add

    return of


# Each takes the names of the programs that the function belongs to.
program = part("run")
setup = part("setup")
helper = part("helper")


def create(path, size, mode=os.O_WRONLY):
    """A file of so many bytes that are not zero, which is on the device."""
    fd = os.open(path, os.O_CREAT | os.O_EXCL | mode, 0o644)
    piece = bytes(range(1, 256)) * 4112
    left = size
    while left:
        left -= os.write(fd, piece[:left])
    os.fsync(fd)
    return fd


def cold(path, size):
    """The same, and nothing of it in memory."""
    fd = create(path, size)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def scattered(n, of, seed=1):
    """n different numbers below `of`, in an order that looks like none."""
    state, seen = seed, set()
    while len(seen) < n:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        number = (state >> 33) % of
        if number not in seen:
            seen.add(number)
            yield number


def name_thread(name):
    """Names the thread that calls, as `ps -T` shows it."""
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)


def in_child(function):
    """Runs a function in another process; returns its number."""
    pid = os.fork()
    if pid == 0:
        try:
            function()
        finally:
            os._exit(0)
    return pid


def wait(*pids):
    for pid in pids:
        os.waitpid(pid, 0)


def until(path):
    """Waits until a file is there."""
    for _ in range(3000):
        if os.path.exists(path):
            return
        time.sleep(0.005)
    raise TimeoutError(path)


def touch(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
