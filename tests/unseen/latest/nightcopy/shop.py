"""The shop's journal: an order is confirmed when it is durable."""
import os
import time

fd = os.open("orders", os.O_WRONLY | os.O_CREAT, 0o644)
os.posix_fallocate(fd, 0, 4 << 20)
os.pwrite(fd, bytes(4 << 20), 0)
os.fsync(fd)
end = time.time() + 4
waits = []
while time.time() < end:
    began = time.perf_counter()
    os.pwrite(fd, b"order %8d " % len(waits) * 200, len(waits) * 4096 % (4 << 20))
    os.fdatasync(fd)
    waits.append((time.perf_counter() - began) * 1000)
    time.sleep(0.01)
waits.sort()
print(f"{len(waits)} orders, median {waits[len(waits) // 2]:.2f} ms, worst tenth {waits[len(waits) * 9 // 10]:.2f} ms")
