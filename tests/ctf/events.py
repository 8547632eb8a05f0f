"""Prints the events of a trace as lines of JSON, as babeltrace2's library reads them:

    events.py TRACE

One object per event: name, wall clock's nanoseconds, CPU, context, and fields. Bytes that are not UTF-8 are
written as sessions have them. A last object has the number of discarded events.
"""

import json
import sys

import bt2


def plain(field):
    if field is None:
        return None
    if isinstance(field, bt2._StructureFieldConst):
        return {name: plain(field[name]) for name in field}
    if isinstance(field, bt2._StringFieldConst):
        data = str(field).encode("utf-8", "surrogateescape")
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    if isinstance(field, bt2._ArrayFieldConst):
        return [plain(element) for element in field]
    return int(field)


discarded = 0
for message in bt2.TraceCollectionMessageIterator(sys.argv[1]):
    if type(message) is bt2._DiscardedEventsMessageConst:
        discarded += message.count or 0
    if type(message) is not bt2._EventMessageConst:
        continue
    event = message.event
    packet = plain(event.packet.context_field) or {}
    print(
        json.dumps(
            {
                "name": event.name,
                "ns": message.default_clock_snapshot.ns_from_origin,
                "cpu": packet.get("cpu_id"),
                "context": plain(event.common_context_field) or {},
                "fields": plain(event.payload_field) or {},
            }
        )
    )
print(json.dumps({"discarded": discarded}))
