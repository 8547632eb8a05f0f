"""Asks the web server at ADDRESS: client.py ADDRESS POSTS. Prints begin and end of each post, nanoseconds of CLOCK_MONOTONIC.

Between two posts it pings the server a few times.
"""

import http.client
import sys
import time

connection = http.client.HTTPConnection(sys.argv[1], 7000)
patience = time.monotonic() + 600
# So it waits in poll, and receives when something is there.
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
    return begin, time.monotonic_ns()


for number in range(int(sys.argv[2])):
    print(*ask("POST", f"/orders/{number}", b"x" * 300))
    for _ in range(8):
        ask("GET", "/ping")
ask("GET", "/end")
