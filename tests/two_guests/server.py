"""A web server: writes each body that is posted to a file on a slow disk, makes it durable, and answers.

server.py ADDRESS FILE. GET /ping is answered at once, GET /end ends it. Prints how long the disk took each time,
in nanoseconds.
"""

import http.server
import os
import sys
import time

# With its blocks, so that a write needs no journal: the thread itself waits for the disk.
file = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY)
os.pwrite(file, bytes(4096), 0)
os.fsync(file)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self):
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def do_GET(self):
        if self.path == "/end":
            self.close_connection = True
            self.server.ended = True
        self.answer()

    def do_POST(self):
        os.pwrite(file, self.rfile.read(int(self.headers["Content-Length"])), 0)
        begin = time.monotonic_ns()
        os.fdatasync(file)
        print(time.monotonic_ns() - begin)
        self.answer()

    def log_message(self, *_):
        pass


server = http.server.HTTPServer((sys.argv[1], 7000), Handler)
server.ended = False
while not server.ended:
    server.handle_request()
