"""Programs whose problem is above the system calls: in calls of a library, or in requests that they answer."""

import ctypes
import fcntl
import os
import socket
import time

from corpus import create, in_child, program, setup, wait

libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.fputs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
libc.fflush.argtypes = libc.fclose.argtypes = [ctypes.c_void_p]
libc.fseek.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_int]
libc.fread.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]


def log(flushes):
    stream = libc.fopen(b"log", b"w")
    for i in range(10000):
        libc.fputs(b"%d: a request was served\n" % i, stream)
        if flushes:
            libc.fflush(stream)
    libc.fclose(stream)


@program("unbuffered-stdio/bad")
def log_with_flushes():
    log(True)


@program("unbuffered-stdio/good")
def log_without():
    log(False)


@setup("stdio-read-amplification/bad", "stdio-read-amplification/good")
def table():
    os.close(create("table", 64 << 20))


PLACES = range(0, 16000 * 4096, 4096)


@program("stdio-read-amplification/bad")
def records_by_stream():
    record = ctypes.create_string_buffer(16)
    stream = libc.fopen(b"table", b"r")
    for place in PLACES:
        libc.fseek(stream, place, 0)
        libc.fread(record, 16, 1, stream)
    libc.fclose(stream)


@program("stdio-read-amplification/good")
def records_by_descriptor():
    fd = os.open("table", os.O_RDONLY)
    for place in PLACES:
        os.pread(fd, 16, place)
    os.close(fd)


def listening(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    return server


def store(server):
    """Answers GET and MGET as Redis does."""
    connection, _ = server.accept()
    while command := connection.recv(65536):
        keys = int(command[1 : command.index(b"\r")]) - 1
        value = b"$5\r\nvalue\r\n"
        connection.sendall(value if keys == 1 else b"*%d\r\n" % keys + value * keys)


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def web(server, requests, handle):
    """Answers so many requests by HTTP, one after the other."""
    connection, _ = server.accept()
    for _ in range(requests):
        connection.recv(65536)
        handle()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def browse(path, requests, pause):
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    for _ in range(requests):
        client.sendall(b"GET /orders HTTP/1.1\r\nHost: shop\r\n\r\n")
        client.recv(65536)
        time.sleep(pause)


def shop(ask):
    keys = [b"customer:%d" % i for i in range(50)]
    with listening("store") as of_store, listening("web") as of_web:
        others = [in_child(lambda: store(of_store)), in_child(lambda: browse("web", 100, 0.001))]
        database = socket.socket(socket.AF_UNIX)
        database.connect("store")
        web(of_web, 100, lambda: ask(database, keys))
        database.close()
        wait(*others)


@program("queries-in-a-loop/bad")
def one_by_one():
    def ask(database, keys):
        for key in keys:
            database.sendall(command(b"GET", key))
            database.recv(65536)

    shop(ask)


@program("queries-in-a-loop/good")
def all_at_once():
    def ask(database, keys):
        database.sendall(command(b"MGET", *keys))
        database.recv(65536)

    shop(ask)


def counter(holds):
    """A web server that locks a file for each request, which another process also locks now and then."""
    fd = os.open("lock", os.O_CREAT | os.O_RDWR, 0o644)

    def other():
        own = os.open("lock", os.O_RDWR)
        for _ in range(40):
            time.sleep(0.03)
            if holds:
                fcntl.flock(own, fcntl.LOCK_EX)
            time.sleep(0.03)
            fcntl.flock(own, fcntl.LOCK_UN)

    def handle():
        fcntl.flock(fd, fcntl.LOCK_EX)
        fcntl.flock(fd, fcntl.LOCK_UN)

    with listening("web") as of_web:
        others = [in_child(other), in_child(lambda: browse("web", 400, 0.002))]
        web(of_web, 400, handle)
        wait(*others)


@program("slow-request/bad")
def with_a_lock_of_another():
    counter(True)


@program("slow-request/good")
def without():
    counter(False)
