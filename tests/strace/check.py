"""Compares what strace's test programs say that strace must print of their calls with
what fathom writes of the same run (export --format strace): call by call, argument by argument.

usage: check.py EXPORT CALLS OUTPUTS < THREADS

EXPORT   the text that fathom wrote
CALLS    the calls that fathom records: bpf/syscalls.def
OUTPUTS  a directory with the standard output of each program, NAME.out
THREADS  lines of a thread's id and the name of the program that it ran

Fails when a call is missing, in another order or with another result, when an
argument differs for no reason of those below, and when a reason has become needless.
"""

import collections
import itertools
import re
import sys
from pathlib import Path

# Why an argument may differ: name, call, argument from 1 (0: any), what strace prints,
# what fathom prints (regular expressions, whole), the reason.
REASONS = []


def reasons(table):
    for line in table.strip().splitlines():
        name, call, at, theirs, ours, why = re.split(r"\s{2,}", line.strip())
        REASONS.append((name, re.compile(call), int(at), re.compile(theirs, re.S), re.compile(ours, re.S), why))


reasons(r"""
address      .*              0  0x[0-9a-f]+( /\*.*)?  \?|""\.\.\.|\{\.\.\.\}|\[.*\]  addresses of buffers and structures are not recorded
null         .*              0  NULL                  \?|""|\[\.\.\.\]|\{flags=\?\}  a null pointer is not told from one that cannot be read
structure    .*              0  \{.*                  \?|\{\.\.\.\}      the structure is not recorded
status       .*stat.*        0  \{st.*                \{st.*\.\.\.\}      type, permissions, size and device of a status are recorded
unreadable   mount|fsopen|fsconfig  0  0x[0-9a-f]+   partial|""        a text that could not be read
long-text    fsopen|memfd_create  1  ".*"\.\.\.     partial|".*"      the text of a name that is longer than the kernel takes
long-text    fsconfig        0  ".*"(\.\.\.)?       (".*"|partial)(\.\.\.)?  strace and the kernel end such texts elsewhere
newer        fsmount         3  .*0xffffff40.*        .*MOUNT_ATTR_IDMAP.*  names that are newer than strace 6.1
order        fsmount|mount_setattr  0  .*ATIME.*      .*ATIME.*          the order of names
unread       mount           3  0x[0-9a-f]+           ".*"               the type, of which strace shows the address where the kernel ignores it
binary       fsconfig        4  ".*"(\.\.\.)?          \?                bytes, which are no text
descriptor   fsconfig        5  .*<.*>                -?\d+             what the descriptor in an argument of a command stands for
ring         fsmount|process_madvise  1  \d+<.*>      \d+              the file of a descriptor that the call refuses
newer        fsconfig        2  0x8 .*                FSCONFIG_CMD_CREATE_EXCL  a name that is newer than strace 6.1
newer        memfd_create    2  .*0x3fffff8.*         .*MFD_NOEXEC_SEAL.*  names that are newer than strace 6.1
newer        move_mount      5  .*                    .*MOVE_MOUNT_BENEATH.*  a name that is newer than strace 6.1
other-calls  mount_setattr   3  .*0xffff66ff.*        .*AT_REMOVEDIR.*   names of bits that only other calls know
tail         mount_setattr   4  \{.*(\?\?\?|/\* bytes.*)\}|0x[0-9a-f]+  \{.*\}  what is behind the known structure, and one of another size
quota        quotactl.*      0  .*                    \?|-?\d+        the fourth argument, and commands that use the third for something else
data         mount           5  .*                    \?                the data of a file system
array        .*              0  ~?\[.*                \?|\[\.\.\.\]      the array is not recorded
bytes        .*xattr         0  ".*                   \?                 values and lists of extended attributes are not recorded
not-moved    p?write(64)?    2  ".*"(\.\.\.)?         ""\.\.\.           content is recorded of calls that moved data
cut          fsetxattr       2  ".*"\.\.\.            ".*"               the test sets another limit of text (-s)
request      ioctl           2  .*                    _IOC\(.*           requests of devices that store nothing have no names here
two-names    ioctl           2  .* or .*              [A-Z0-9_]+         strace has several names for the number
ioctl        ioctl           3  .*                    \?                 the argument of ioctl is not recorded
new-fd       dup[23]         2  \d+<.*                \d+                what newfd stood for is not recorded
registered   io_uring_.*     1  \d+<.*                \d+                the number of a registered ring, which strace 6.1 takes for a descriptor
sigset       io_uring_enter  6  \d+                   \?                 the size of the signal mask is not recorded
signs        .*              0  .*\[?\{tv_sec.*       \[?\{tv_sec.*      microseconds and nanoseconds are signed for the kernel, not for strace
date         utime           2  .*/\* \d{4}-.*        \{actime=.*        the date in a comment is left out
newer        statx           4  .*0x[0-9a-f]+.*       .*STATX_MNT_ID_UNIQUE.*  names that are newer than strace 6.1
newer        fanotify_init   1  .*0xe?f.*             .*FAN_REPORT_MNT.*     names that are newer than strace 6.1
newer        fanotify_mark   3  .*                    .*FAN_PRE_ACCESS.*     names that are newer than strace 6.1
newer        io_uring_register  2  0x18 .*            IORING_REGISTER_SYNC_CANCEL  a name that is newer than strace 6.1
at-position  p(read|write)v.*  4  -1                  \?                 stands for the position of the descriptor, where there is none
how          openat2         3  .*                    \{flags=.*         a mode of 64 bits, what is behind the known structure, one that cannot be read
sendfile     sendfile        3  .*                    \[-?\d+\]          where it took place, and not what was passed
""")

Call = collections.namedtuple("Call", "name args result")


def split(text):
    """The arguments of `text`, which stands behind a call's bracket, and what follows."""
    args, start, at, depth = [], 0, 0, 0
    while at < len(text):
        c = text[at]
        if c == '"' or text.startswith("/*", at):
            end = re.compile(r'"(?:\\.|[^"\\])*"|/\*.*?\*/', re.S).match(text, at)
            at = end.end() if end else len(text)
            continue
        if c == "<" and re.search(r"(\d|CWD)$", text[start:at]) and text[at + 1] != "<":
            at = text.index(">", at) + 1
            continue
        if c in "([{":
            depth += 1
        elif c in ")]}" and depth:
            depth -= 1
        elif c in ",)" and not depth:
            args.append(text[start:at].strip())
            start = at + 1
            if c == ")":
                return [a for a in args if a], text[at + 1 :].strip()
        at += 1
    raise ValueError("not a call: " + text)


def parse(line):
    """A call of a line without a thread, None for anything else (dumps, signals)."""
    match = re.match(r"([a-z_0-9]+)\((.*)", line, re.S)
    if not match:
        return None
    args, rest = split(match[2])
    if not rest.startswith("="):
        return None
    result = re.sub(r" <\d+\.\d+>$", "", rest[1:].strip())
    return Call(match[1], args, result)


def exported(path, wanted):
    """fathom's calls of the threads that are wanted, in order."""
    calls, begun = collections.defaultdict(list), {}
    for number, line in enumerate(open(path, errors="surrogateescape")):
        tid, _, text = line.rstrip("\n").split(None, 2)
        if tid not in wanted:
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", text)
        if resumed:
            number, start = begun.pop(tid)
            text = start + resumed[1]
        # What a program prints is no part of what it writes about.
        prints = re.match(r"write\(\d+<[^>]*\.out>", text)
        if text.endswith("<unfinished ...>"):
            begun[tid] = number, text[: -len("<unfinished ...>")]
            continue
        if not prints:
            calls[tid].append((number, parse(text)))
    return calls


def plain(text):
    """Without what stands behind descriptors: strace's tests without -y expect that."""
    return re.sub(r"^(-?\d+|AT_FDCWD)<(?!<).*>(\(deleted\))?$", r"\1", text)


def same(theirs, ours):
    return theirs == ours or "<" in ours and theirs == plain(ours)


def agrees(theirs, ours):
    """Whether it is the same call with the same result. With some of strace's options its
    tests expect no name of the error."""
    results = theirs.result, ours.result
    return theirs.name == ours.name and (same(*results) or same(results[0], results[1].split()[0]))


def faults(theirs, ours):
    """The arguments that differ: position from 1, strace's, fathom's."""
    pairs = itertools.zip_longest(theirs.args, ours.args, fillvalue="nothing")
    return [(at, a, b) for at, (a, b) in enumerate(pairs, 1) if not same(a, b)]


def align(theirs, ours, all_written):
    """Pairs each expected call with one of fathom's, in order, so that they differ least:
    a program makes calls that it does not write about, as the C library's at the beginning."""
    last = ours[len(ours) - len(theirs) :] if all_written and len(ours) >= len(theirs) else []
    if last and all(map(agrees, theirs, last)):
        return zip(theirs, last)
    missing = 1000
    cost = [[0] * (len(ours) + 1)]
    for a in reversed(theirs):
        row, below = [cost[-1][-1] + missing], cost[-1]
        for at in range(len(ours) - 1, -1, -1):
            pair = len(faults(a, ours[at])) if agrees(a, ours[at]) else 2 * missing
            row.append(min(row[-1], below[at + 1] + pair, below[at] + missing))
        cost.append(row[::-1])
    cost.reverse()
    pairs, at = [], 0
    for i, a in enumerate(theirs):
        while at < len(ours) and cost[i][at] == cost[i][at + 1]:
            at += 1
        found = cost[i][at] < cost[i + 1][at] + missing
        pairs.append((a, ours[at] if found else None))
        at += found
    return pairs


def reason(call, at, theirs, ours):
    for name, calls, place, a, b, _ in REASONS:
        if calls.fullmatch(call) and place in (0, at) and a.fullmatch(theirs) and b.fullmatch(ours):
            return name
    return None


def main(export, table, outputs):
    known = {line.split()[0] for line in open(table) if line.strip() and not line.startswith("#")}
    threads = collections.defaultdict(list)
    for line in sys.stdin:
        tid, program = line.split()
        threads[program].append(tid)
    recorded = exported(export, {tid for tids in threads.values() for tid in tids})
    counts, wrong, unrecorded = collections.Counter(), [], collections.Counter()
    for path in sorted(Path(outputs).glob("*.out")):
        theirs = [parse(line) for line in open(path, errors="surrogateescape").read().splitlines()]
        theirs = [call for call in theirs if call]
        unrecorded.update(call.name for call in theirs if call.name not in known)
        theirs = [call for call in theirs if call.name in known]
        names = {call.name for call in theirs}
        ours = sorted(entry for tid in threads[path.stem] for entry in recorded[tid] if entry[1].name in names)
        ours = [call for _, call in ours]
        # Programs of that name write about the calls on one path only.
        for a, b in align(theirs, ours, not path.stem.endswith("-P")):
            counts["calls"] += 1
            where = f"{path.stem}: {a.name}({', '.join(a.args)}) = {a.result}"
            if not b:
                wrong.append(f"missing: {where}")
                continue
            different = faults(a, b)
            counts["arguments equal"] += max(len(a.args), len(b.args)) - len(different)
            for at, x, y in different:
                why = reason(a.name, at, x, y)
                counts[f"reason {why}"] += 1
                if not why:
                    wrong.append(f"argument {at}: {x}, fathom {y}\n    {where}")
    for name in counts:
        print(f"{counts[name]:7} {name}")
    print("calls that fathom does not record:", ", ".join(f"{n} {c}" for n, c in unrecorded.most_common()))
    for name, *_, why in REASONS:
        if not counts[f"reason {name}"]:
            wrong.append(f"reason {name} is needed no more: {why}")
    for line in wrong:
        print(line[:600])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
