"""Reads a Perfetto trace with the schema of PyPI's package perfetto, and says as
JSON what is in it. Fails when a message has a field that the schema does not
know, when slices of a track do not nest, or when something interned is missing.

These are the rules by which trace_processor builds its tables from track events:
a slice ends the one that began last on its track; a flow joins slices with the
same flow id; packets of a sequence see what earlier ones interned, since the last
packet that cleared it.
"""

import json
import sys
import zlib
from collections import defaultdict

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema


def unknown(message):
    """Names of messages that have fields which the schema lacks."""
    if len(unknown_fields.UnknownFieldSet(message)):
        yield message.DESCRIPTOR.full_name
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for item in value if field.is_repeated else [value]:
            yield from unknown(item)


def packets(data):
    for packet in schema.Trace.FromString(data).packet:
        if packet.HasField("compressed_packets"):
            yield from packets(zlib.decompress(packet.compressed_packets))
        else:
            yield packet


def main(path):
    with open(path, "rb") as file:
        data = file.read()
    interned = defaultdict(dict)
    tracks, flows, stacks = {}, defaultdict(list), defaultdict(list)
    slices, counters, instants = [], defaultdict(list), 0
    clocks = {}
    cleared = False
    events = []
    for order, packet in enumerate(packets(data)):
        bad = list(unknown(packet))
        assert not bad, f"fields that the schema lacks: {bad}"
        assert packet.trusted_packet_sequence_id
        if packet.sequence_flags & schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            interned.clear()
            cleared = True
            assert packet.trace_packet_defaults.timestamp_clock_id == 3
        assert cleared, "nothing was cleared before the first packet"
        for kind in interned_kinds:
            for entry in getattr(packet.interned_data, kind):
                text = entry.str.decode() if kind.endswith("values") else entry.name
                interned[kind][entry.iid] = text
        if packet.HasField("clock_snapshot"):
            clocks = {c.clock_id: c.timestamp for c in packet.clock_snapshot.clocks}
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            event = packet.track_event
            assert event.track_uuid in tracks, "event on a track that was not told"
            decoded = {
                "name": interned["event_names"][event.name_iid] if event.name_iid else None,
                "categories": [interned["event_categories"][i] for i in event.category_iids],
                "args": {
                    interned["debug_annotation_names"][a.name_iid]: (
                        interned["debug_annotation_string_values"][a.string_value_iid]
                        if a.HasField("string_value_iid")
                        else a.int_value
                    )
                    for a in event.debug_annotations
                },
            }
            events.append((packet.timestamp, order, event, decoded))
    # Packets are sorted by time, those of one time stay in the file's order.
    for time, _, event, decoded in sorted(events, key=lambda e: e[:2]):
        stack = stacks[event.track_uuid]
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            slice_id = len(slices)
            slices.append(
                {"ts": time, "track": event.track_uuid, "depth": len(stack), **decoded}
            )
            stack.append(slice_id)
            for flow in event.flow_ids:
                flows[flow].append(slice_id)
        elif event.type == schema.TrackEvent.TYPE_SLICE_END:
            assert stack, "a slice ends that did not begin"
            slice_id = stack.pop()
            slices[slice_id]["dur"] = time - slices[slice_id]["ts"]
        elif event.type == schema.TrackEvent.TYPE_COUNTER:
            counters[event.track_uuid].append([time, event.double_counter_value])
        else:
            instants += 1
    left = sum(map(len, stacks.values()))
    assert left == 0, f"{left} slices do not end"
    for item in slices:
        item["track"] = name_of(tracks, item["track"])
    print(
        json.dumps(
            {
                "clocks": clocks,
                "slices": slices,
                "instants": instants,
                "flows": {k: v for k, v in flows.items() if len(v) > 1},
                "counters": {name_of(tracks, k): v for k, v in counters.items()},
                "tracks": sorted(name_of(tracks, k) for k in tracks),
            }
        )
    )


def name_of(tracks, uuid):
    track = tracks[uuid]
    if track.HasField("thread"):
        return f"thread {track.thread.tid} {track.thread.thread_name}"
    if track.HasField("process"):
        return f"process {track.process.pid} {track.process.process_name}"
    parent = name_of(tracks, track.parent_uuid) + ": " if track.parent_uuid else ""
    return parent + track.name


interned_kinds = [
    "event_names",
    "event_categories",
    "debug_annotation_names",
    "debug_annotation_string_values",
]
main(sys.argv[1])
