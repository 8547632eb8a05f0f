"""Writes a trace in CTF 1.8 with babeltrace2's writer, with events as LTTng's kernel tracer has them:

    write.py DIRECTORY [calls | scheduler]

Two CPUs have a stream each; in the trace of calls, 3 events of the second one were discarded.
"""

import sys

import bt2

START = 1_000_000


class Events(bt2._UserMessageIterator):
    def __init__(self, config, port):
        trace, stream, kinds = port.user_data
        streams = [trace.create_stream(stream, name=f"channel0_{cpu}") for cpu in range(2)]
        self._messages = self._all(streams, kinds)

    def __next__(self):
        return next(self._messages)

    def _all(self, streams, kinds):
        packets = []
        for cpu, stream in enumerate(streams):
            yield self._create_stream_beginning_message(stream)
            packets.append(stream.create_packet())
            packets[cpu].context_field["cpu_id"] = cpu
            yield self._create_packet_beginning_message(packets[cpu], START)
        for ns, cpu, name, tid, fields in WRITTEN:
            message = self._create_event_message(kinds[name], packets[cpu], START + ns)
            context = message.event.common_context_field
            context["tid"], context["pid"] = tid, 10 if tid < 20 else 20
            context["procname"] = "worker" if WRITTEN is CALLS else f"t{tid}"
            for field, value in fields.items():
                message.event.payload_field[field] = value
            yield message
        for cpu, stream in enumerate(streams):
            yield self._create_packet_end_message(packets[cpu], START + 90_000)
            if cpu == 1 and WRITTEN is CALLS:
                yield self._create_discarded_events_message(stream, 3, START + 90_000, START + 95_000)
                packet = stream.create_packet()
                packet.context_field["cpu_id"] = cpu
                yield self._create_packet_beginning_message(packet, START + 95_000)
                yield self._create_packet_end_message(packet, START + 95_000)
            yield self._create_stream_end_message(stream)


# Time, CPU, event, thread, fields. Texts come as they are; a mode is 16 bits, a dev 32.
CALLS = [
    (0, 0, "lttng_statedump_file_descriptor", 10, {"pid": 10, "fd": 4, "flags": 2, "fmode": 3, "filename": "/data/in herited"}),
    (1, 0, "lttng_statedump_block_device", 10, {"dev": 0x800010, "diskname": "sdb"}),
    (1000, 0, "syscall_entry_openat", 11, {"dfd": -100, "filename": "/data/a \"b\"\n", "flags": 0o2101, "mode": 0o640}),
    (1500, 1, "syscall_entry_pwrite64", 12, {"fd": 4, "count": 8192, "pos": 4096}),
    (2000, 0, "syscall_exit_openat", 11, {"ret": 5}),
    (2100, 0, "block_rq_issue", 11, {"dev": 0x800010, "sector": 2048, "nr_sector": 16, "bytes": 8192, "tid": 11, "rwbs": 33, "comm": "worker"}),
    (2500, 1, "block_rq_complete", 12, {"dev": 0x800010, "sector": 2048, "nr_sector": 16, "error": 0, "rwbs": 33}),
    (3000, 1, "syscall_exit_pwrite64", 12, {"ret": 8192}),
    (3100, 0, "syscall_entry_write", 11, {"fd": 5, "count": 100}),
    (3400, 0, "syscall_exit_write", 11, {"ret": -28}),
    (3500, 0, "syscall_entry_newstat", 11, {"filename": "relative"}),
    (3600, 1, "syscall_exit_newstat", 11, {"ret": -2}),
    (3700, 0, "syscall_entry_futex", 11, {}),
    (3800, 0, "syscall_exit_futex", 11, {"ret": 0}),
    (3900, 0, "syscall_entry_brk", 11, {}),
    (3950, 0, "syscall_exit_brk", 11, {"ret": 1 << 40}),
    (4000, 0, "sched_process_fork", 11, {"parent_pid": 10, "child_tid": 20, "child_pid": 20, "child_comm": "child"}),
    (4100, 1, "syscall_entry_dup2", 20, {"oldfd": 5, "newfd": 1}),
    (4200, 1, "syscall_exit_dup2", 20, {"ret": 1}),
    (4300, 1, "syscall_entry_close", 20, {"fd": 5}),
    (4400, 1, "syscall_exit_close", 20, {"ret": 0}),
    (4500, 1, "syscall_entry_write", 20, {"fd": 1, "count": 7}),
    (4700, 1, "syscall_exit_write", 20, {"ret": 7}),
    (4800, 1, "syscall_entry_write", 20, {"fd": 5, "count": 7}),
    (4900, 1, "syscall_exit_write", 20, {"ret": -9}),
    (5000, 0, "syscall_entry_read", 11, {"fd": 5, "count": 1}),
]


def switch(ns, cpu, before, state, after):
    fields = {"prev_comm": "t", "prev_tid": before, "prev_state": state, "next_comm": f"t{after}", "next_tid": after}
    return (ns, cpu, "sched_switch", before, fields)


def wake(ns, cpu, by, tid):
    return (ns, cpu, "sched_waking", by, {"comm": f"t{tid}", "tid": tid, "target_cpu": 0})


REQUEST = {"dev": 0x800010, "sector": 4096, "nr_sector": 8, "rwbs": 4}
# Thread 13 reads from a disk whose interrupt comes on the other CPU, is woken by thread 14, which then makes
# room for it, and waits for a lock in a call that fathom does not record.
SCHEDULER = [
    (0, 0, "lttng_statedump_file_descriptor", 10, {"pid": 10, "fd": 4, "flags": 0, "fmode": 1, "filename": "/data/big"}),
    (1, 0, "lttng_statedump_block_device", 10, {"dev": 0x800010, "diskname": "sdb"}),
    switch(6000, 0, 0, 0, 13),
    (6100, 0, "syscall_entry_pread64", 13, {"fd": 4, "count": 4096, "pos": 8192}),
    (6200, 0, "block_rq_insert", 13, REQUEST | {"bytes": 4096, "tid": 13, "comm": "t13"}),
    (6250, 0, "block_rq_issue", 13, REQUEST | {"bytes": 4096, "tid": 13, "comm": "t13"}),
    switch(6300, 0, 13, 2, 0),
    (6900, 1, "irq_handler_entry", 0, {"irq": 30, "name": "virtio0-req.0"}),
    (6920, 1, "block_rq_complete", 0, REQUEST | {"error": 0}),
    wake(6930, 1, 0, 13),
    (6950, 1, "irq_handler_exit", 0, {"irq": 30, "ret": 1}),
    switch(7000, 0, 0, 0, 13),
    (7050, 0, "irq_softirq_entry", 13, {"vec": 1}),
    (7080, 0, "irq_softirq_exit", 13, {"vec": 1}),
    (7100, 0, "syscall_exit_pread64", 13, {"ret": 4096}),
    switch(7200, 0, 13, 1, 14),
    wake(7300, 0, 14, 13),
    # The second of two events of one wake-up.
    (7310, 0, "sched_wakeup", 14, {"comm": "t13", "tid": 13, "target_cpu": 0}),
    switch(7400, 0, 14, 0x100, 13),
    (7500, 0, "syscall_entry_semop", 13, {}),
    switch(7600, 0, 13, 1, 0),
    (7700, 1, "timer_hrtimer_expire_entry", 0, {"now": 1}),
    wake(7710, 1, 0, 13),
    (7720, 1, "timer_hrtimer_expire_exit", 0, {"now": 1}),
    switch(7800, 0, 0, 0, 13),
    (7900, 0, "syscall_exit_semop", 13, {"ret": 0}),
    # It ends: there is no wait.
    switch(8000, 0, 13, 0x20, 0),
]
WRITTEN = {"calls": CALLS, "scheduler": SCHEDULER}[sys.argv[2] if len(sys.argv) > 2 else "calls"]


def integer(kind, field):
    """The type that LTTng has for a field."""
    if field in ("ret", "pos"):
        return kind.create_signed_integer_field_class(64)
    if field in ("dfd", "error"):
        return kind.create_signed_integer_field_class(32)
    bits = {"mode": 16, "dev": 32, "nr_sector": 32, "fd": 32}.get(field, 64)
    return kind.create_unsigned_integer_field_class(bits)


class Source(bt2._UserSourceComponent, message_iterator_class=Events):
    def __init__(self, config, params, obj):
        kind = self._create_trace_class()
        offset = bt2.ClockClassOffset(1_700_000_000)
        clock = self._create_clock_class(frequency=1_000_000_000, name="monotonic", offset=offset)
        trace = kind(environment={"domain": "kernel", "hostname": "traced"})
        context = kind.create_structure_field_class()
        context += [("cpu_id", kind.create_unsigned_integer_field_class(32))]
        common = kind.create_structure_field_class()
        for name in ("pid", "tid"):
            common += [(name, kind.create_signed_integer_field_class(32))]
        common += [("procname", kind.create_string_field_class())]
        stream = kind.create_stream_class(
            default_clock_class=clock,
            supports_packets=True,
            packets_have_beginning_default_clock_snapshot=True,
            packets_have_end_default_clock_snapshot=True,
            supports_discarded_events=True,
            discarded_events_have_default_clock_snapshots=True,
            packet_context_field_class=context,
            event_common_context_field_class=common,
        )
        kinds = {}
        for _, _, name, _, fields in WRITTEN:
            if name in kinds:
                continue
            payload = kind.create_structure_field_class()
            for field, value in fields.items():
                text = isinstance(value, str)
                of = kind.create_string_field_class() if text else integer(kind, field)
                payload += [(field, of)]
            kinds[name] = stream.create_event_class(name=name, payload_field_class=payload)
        self._add_output_port("out", (trace, stream, kinds))


graph = bt2.Graph()
source = graph.add_component(Source, "source")
writer = bt2.find_plugin("ctf").sink_component_classes["fs"]
options = {"path": sys.argv[1], "assume-single-trace": True, "quiet": True}
sink = graph.add_component(writer, "sink", options)
graph.connect_ports(source.output_ports["out"], sink.input_ports["in"])
graph.run()
# The writer writes the description when it goes.
del sink, source, graph
