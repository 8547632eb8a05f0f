"""Prints the calls of a trace of LTTng's kernel tracer as lines of JSON, from the events that babeltrace2's
library reads:

    calls.py TRACE

[name, tid, start, duration, result, CPU of the end], times in the wall clock's nanoseconds. A call
belongs to the thread of its context, or to the one that its CPU runs by sched_switch. The name is that
behind syscall_entry_ or sys_.
"""

import json
import sys

import bt2

entered = {}
running = {}


def number(fields, name):
    return int(fields[name]) if fields is not None and name in fields else None


for message in bt2.TraceCollectionMessageIterator(sys.argv[1]):
    if type(message) is not bt2._EventMessageConst:
        continue
    event = message.event
    cpu = number(event.packet.context_field, "cpu_id")
    fields = event.payload_field
    name = event.name.removeprefix("compat_")
    if name == "sched_switch":
        running[cpu] = number(fields, "next_tid")
    enters = name.startswith("syscall_entry_") or name.startswith("sys_")
    if not enters and not name.startswith("syscall_exit_") and name != "exit_syscall":
        continue
    tid = number(event.common_context_field, "tid")
    if tid is None:
        tid = running.get(cpu)
    if tid is None:
        continue
    ns = message.default_clock_snapshot.ns_from_origin
    if enters:
        before = entered.get(tid)
        if before:
            print(json.dumps([before[0], tid, before[1], None, None, None]))
        call = name.removeprefix("syscall_entry_").removeprefix("sys_")
        entered[tid] = (call, ns)
    elif tid in entered:
        call, start = entered.pop(tid)
        if name not in ("exit_syscall", "syscall_exit_" + call):
            print(json.dumps([call, tid, start, None, None, None]))
            continue
        print(json.dumps([call, tid, start, ns - start, number(fields, "ret"), cpu]))
for tid, (call, start) in entered.items():
    print(json.dumps([call, tid, start, None, None, None]))
