import socket
import time

s = socket.socket(socket.AF_UNIX)
s.connect("redis.sock")
times = []
end = time.time() + 4
while time.time() < end:
    t = time.time()
    s.sendall(b"*2\r\n$3\r\nGET\r\n$10\r\nsession:17\r\n")
    s.recv(4096)
    times.append(time.time() - t)
    time.sleep(0.001)
times.sort()
print(len(times), "requests, median %.2f ms, slowest %.0f %.0f %.0f ms" % (times[len(times) // 2] * 1e3, *[t * 1e3 for t in times[-3:]]))
