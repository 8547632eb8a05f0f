"""A collector of logs by OpenTelemetry's own definitions, which know no other fields. It answers 503 while a file
named `down` is in DIRECTORY; what it takes it appends to `taken` there, a JSON object per log. Prints its port.
Usage: otlp_logs.py DIRECTORY
"""

import http.server
import json
import pathlib
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)

DIRECTORY = pathlib.Path(sys.argv[1])


def plain(attributes):
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in attributes}


def logs(request):
    for of_resource in request.resource_logs:
        for of_scope in of_resource.scope_logs:
            for log in of_scope.log_records:
                yield {
                    "resource": plain(of_resource.resource.attributes),
                    "scope": of_scope.scope.name,
                    "event": log.event_name,
                    "time": log.time_unix_nano,
                    "observed": log.observed_time_unix_nano,
                    "severity": log.severity_number,
                    "body": log.body.string_value,
                    "attributes": plain(log.attributes),
                }


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, answer = 404, b""
        if (DIRECTORY / "down").exists():
            status = 503
        elif self.path == "/v1/logs" and self.headers["Content-Type"] == "application/json":
            request = json_format.Parse(body, ExportLogsServiceRequest())
            with open(DIRECTORY / "taken", "a", encoding="utf-8") as taken:
                taken.writelines(json.dumps(log) + "\n" for log in logs(request))
            status, answer = 200, json_format.MessageToJson(ExportLogsServiceResponse()).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    print(server.server_port, flush=True)
    server.serve_forever()


main()
