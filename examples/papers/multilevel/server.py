"""A web server whose pages need a database, with spans, and its client.

    server.py serve PORT DATABASE PAGES SPANS   until a request for /end
    server.py ask PORT SECONDS FILE             asks for pages, one after another, and writes their times

A page reads blocks of the database: half of the pages need the first tenth of it, the others any
place. Each is a span with two inside: `plugin`, which computes (the paper's check of a session that
takes 70 % of a page), and `database`.
"""

import http.client
import http.server
import json
import os
import random
import secrets
import sys
import threading
import time

BLOCK = 16 << 10


class Spans:
    """Spans of OpenTelemetry, a JSON document per request."""

    def __init__(self, out):
        self.out = out
        self.lock = threading.Lock()

    def add(self, trace, spans):
        resource = {"attributes": [attribute("service.name", "shop"), attribute("process.pid", os.getpid())]}
        for span in spans:
            span.update(traceId=trace, kind=2 if "parentSpanId" not in span else 1)
        document = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}
        with self.lock:
            self.out.write(json.dumps(document) + "\n")
            self.out.flush()


def attribute(key, value):
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": key, "value": {kind: str(value)}}


def begun(name, parent=None):
    span = {"name": name, "spanId": secrets.token_hex(8), "startTimeUnixNano": str(time.time_ns())}
    span["attributes"] = [attribute("thread.id", threading.get_native_id())]
    if parent:
        span["parentSpanId"] = parent["spanId"]
    return span


def ended(span):
    span["endTimeUnixNano"] = str(time.time_ns())


def serve(port, database, pages, spans):
    file = os.open(database, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    blocks = os.fstat(file).st_size // BLOCK

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            if self.path == "/end":
                self.answer(b"")
                threading.Thread(target=self.server.shutdown).start()
                return
            trace, page = secrets.token_hex(16), begun("GET /page")
            plugin = begun("plugin", page)
            until = time.thread_time_ns() + 700_000
            while time.thread_time_ns() < until:
                pass
            ended(plugin)
            reading = begun("database", page)
            seed = random.Random(self.path)
            hot = seed.random() < 0.5
            read = 0
            for _ in range(pages):
                block = seed.randrange(blocks // 10 if hot else blocks)
                read += len(os.pread(file, BLOCK, block * BLOCK))
            ended(reading)
            self.answer(str(read).encode())
            ended(page)
            log.add(trace, [page, plugin, reading])

        def answer(self, body):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    with open(spans, "w") as out:
        log = Spans(out)
        http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


def ask(port, seconds, name):
    end, number = time.monotonic() + seconds, 0
    with open(name, "w") as out:
        while time.monotonic() < end:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            begin = time.monotonic()
            connection.request("GET", f"/page/{number}")
            connection.getresponse().read()
            out.write(f"{number},{time.monotonic() - begin:.6f}\n")
            connection.close()
            number += 1
            time.sleep(0.004)
        print(number)


match sys.argv[1:]:
    case ["serve", port, database, pages, spans]:
        serve(int(port), database, int(pages), spans)
    case ["ask", port, seconds, name]:
        ask(int(port), float(seconds), name)
    case _:
        sys.exit(__doc__)
