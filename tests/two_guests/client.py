"""Asks the web server at ADDRESS: client.py ADDRESS POSTS. Prints the durations of the posts in nanoseconds.

Between two posts it pings the server a few times.
"""

import http.client
import sys
import time

connection = http.client.HTTPConnection(sys.argv[1], 7000)
patience = time.monotonic() + 120
connection.timeout = 60
while True:
    try:
        connection.connect()
        break
    except OSError:
        if time.monotonic() > patience:
            raise
        time.sleep(0.2)


def ask(method, path, body=None):
    begin = time.monotonic_ns()
    connection.request(method, path, body)
    assert connection.getresponse().read() == b"ok\n"
    return time.monotonic_ns() - begin


for number in range(int(sys.argv[2])):
    print(ask("POST", f"/orders/{number}", b"x" * 300))
    for _ in range(8):
        ask("GET", "/ping")
ask("GET", "/end")
