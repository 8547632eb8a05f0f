"""Servers of HTTPS, and a client, that use a TLS library in unusual ways.

tls_servers.py PORT CERTIFICATE KEY
"""

import asyncio
import os
import socket
import ssl
import sys
import threading

port, certificate, key = int(sys.argv[1]), sys.argv[2], sys.argv[3]
server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
server_side.load_cert_chain(certificate, key)
client_side = ssl.create_default_context(cafile=certificate)


def request(path, body=b""):
    return b"POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % (path, len(body)) + body


def response(body):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def pair(do):
    """Runs `do(server)` and gives the client, each with an end of a connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        plain, _ = listener.accept()
        with server_side.wrap_socket(plain, server_side=True) as server:
            do(server)

    thread = threading.Thread(target=serve)
    thread.start()
    plain = socket.create_connection(listener.getsockname())
    return client_side.wrap_socket(plain, server_hostname="127.0.0.1"), thread


def whole(connection, length):
    got = b""
    while len(got) < length:
        more = connection.recv(length - len(got))
        if not more:
            raise EOFError
        got += more
    return got


def nothing_to_read():
    """Reads that fail because nothing has come, requests in pieces, and a connection that is shut down."""

    waits = threading.Event()

    def serve(server):
        server.setblocking(False)
        got = b""
        while len(got) < len(request(b"/pieces")):
            try:
                got += server.recv(7)
            except ssl.SSLWantReadError:
                waits.set()
        server.setblocking(True)
        server.sendall(response(b"x" * 50_000))
        assert server.recv(100) == b""
        server.unwrap()

    client, thread = pair(serve)
    waits.wait()
    for byte in request(b"/pieces"):
        client.sendall(bytes([byte]))
    whole(client, len(response(b"x" * 50_000)))
    client.unwrap()
    thread.join()


def other_thread():
    """One thread receives the request, and another one answers."""

    def serve(server):
        whole(server, len(request(b"/threads")))
        other = threading.Thread(target=server.sendall, args=(response(b"y"),))
        other.start()
        other.join()

    client, thread = pair(serve)
    client.sendall(request(b"/threads"))
    whole(client, len(response(b"y")))
    thread.join()
    client.close()


def child():
    """A child answers with the connection of its parent."""
    listener = socket.create_server(("127.0.0.1", 0))
    pid = os.fork()
    if pid == 0:
        plain = socket.create_connection(listener.getsockname())
        with client_side.wrap_socket(plain, server_hostname="127.0.0.1") as client:
            for path in [b"/parent", b"/child"]:
                client.sendall(request(path))
                whole(client, len(response(path)))
        os._exit(0)
    plain, _ = listener.accept()
    server = server_side.wrap_socket(plain, server_side=True)
    whole(server, len(request(b"/parent")))
    server.sendall(response(b"/parent"))
    # Of one object in two processes, each has a copy.
    worker = os.fork()
    if worker == 0:
        whole(server, len(request(b"/child")))
        server.sendall(response(b"/child"))
        os._exit(0)
    os.waitpid(worker, 0)
    os.waitpid(pid, 0)


async def memory():
    """asyncio exchanges the encrypted bytes with the library through memory."""

    async def serve(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ")[1]
                writer.write(response(path))
                await writer.drain()
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, ssl=server_side)

    async def ask(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_side)
        for _ in range(10):
            writer.write(request(b"/memory%d" % number))
            await reader.readuntil(b"/memory%d" % number)
        writer.close()
        await writer.wait_closed()

    # The library's objects are freed, and others get their addresses.
    for _ in range(3):
        await asyncio.gather(*(ask(number) for number in range(4)))
    server.close()


nothing_to_read()
other_thread()
child()
asyncio.run(memory())
