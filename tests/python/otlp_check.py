"""Reads lines of OTLP JSON with OpenTelemetry's own definitions, which know no other fields, and checks that
ids are unique and that spans lie in their parents. Prints the spans as a JSON list of objects. Usage:
otlp_check.py FILE
"""

import json
import pathlib
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def main():
    spans = []
    for line in pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        request = json_format.Parse(line, ExportTraceServiceRequest())
        for resource, raw in zip(request.resource_spans, json.loads(line)["resourceSpans"]):
            service = {a.key: a.value for a in resource.resource.attributes}["service.name"]
            for span, ids in zip(resource.scope_spans[0].spans, raw["scopeSpans"][0]["spans"]):
                assert len(bytes.fromhex(ids["traceId"])) == 16, ids
                assert len(bytes.fromhex(ids["spanId"])) == 8, ids
                attributes = {a.key: a.value for a in span.attributes}
                spans.append(
                    {
                        "id": (ids["traceId"], ids["spanId"]),
                        "parent": ids.get("parentSpanId"),
                        "name": span.name,
                        "service": service.string_value,
                        "rid": attributes["fathom.rid"].int_value if "fathom.rid" in attributes else None,
                        "layer": attributes["fathom.layer"].string_value if "fathom.layer" in attributes else None,
                        "start": span.start_time_unix_nano,
                        "end": span.end_time_unix_nano,
                    }
                )
    known = {span["id"]: span for span in spans}
    assert len(known) == len(spans), "two spans have one id"
    for span in spans:
        parent = known.get((span["id"][0], span["parent"]))
        if span["rid"] is None:
            continue
        # A call may outlast the span that it began in.
        assert parent is not None, span
        assert parent["start"] <= span["start"], (parent, span)
        assert span["layer"] is None or span["end"] <= parent["end"], (parent, span)
    json.dump(spans, sys.stdout)


main()
