"""Sends reports to the archive host, which stores what it receives."""
import os
import random
import socket
import threading
import time

COUNT = 12


def archive(server):
    for n in range(COUNT):
        peer, _ = server.accept()
        with peer, open(f"received/report{n}", "wb") as out:
            while data := peer.recv(1 << 16):
                out.write(data)
                time.sleep(0.002)


def send(path, address):
    peer = socket.create_connection(address)
    peer.settimeout(10)
    with peer, open(path, "rb") as report:
        size = os.fstat(report.fileno()).st_size
        peer.sendall(b"%d\n" % size)
        os.sendfile(peer.fileno(), report.fileno(), 0, size)


server = socket.create_server(("127.0.0.1", 0))
thread = threading.Thread(target=archive, args=(server,))
thread.start()
r = random.Random(2)
for n in range(COUNT):
    with open(f"report{n}", "wb") as out:
        out.write(r.randbytes(16_000_000))
    send(f"report{n}", server.getsockname())
thread.join()
print([os.path.getsize(f"received/report{n}") for n in range(3)], "of 16000009")
