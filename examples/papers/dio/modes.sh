#!/usr/bin/env bash
# DIO, tables 2 and 4: the least detail with which each of its four cases can be seen, found by
# asking recordings of one small program; and the same questions to other tracers.
#
#   examples/papers/dio/modes.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin dio-modes "$@"
need command strace strace

# Each case in small: threads by name that read (RocksDB); a log that is opened for each line (Redis); a
# file that is written, looked at and removed by its path (Elasticsearch); bytes that another
# process reads (Fluent Bit).
cat >"$work/cases.py" <<'PY'
import os
import sys
import threading

work = sys.argv[1]


def compact():
    with open("/proc/thread-self/comm", "w") as name:
        name.write("compaction")
    file = os.open(f"{work}/table", os.O_RDONLY)
    for _ in range(100):
        os.read(file, 16)
    os.close(file)


with open(f"{work}/table", "wb") as table:
    table.write(bytes(4096))
thread = threading.Thread(target=compact)
thread.start()
thread.join()
for line in range(20):
    log = os.open(f"{work}/redis.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(log, b"a line of 16 b.\n")
    os.close(log)
os.close(os.open(f"{work}/.es_temp_file", os.O_WRONLY | os.O_CREAT))
os.lstat(f"{work}/.es_temp_file")
os.unlink(f"{work}/.es_temp_file")
with open(f"{work}/app.log", "wb") as log:
    log.write(b"the 26 bytes of event one\n")
with open(f"{work}/app.log", "rb") as log:
    log.read()
PY

# sees SESSION: one word per case, of RocksDB, Redis, Elasticsearch and Fluent Bit.
sees() {
	value "$1" "SELECT
		if((SELECT count(*) FROM syscalls WHERE comm = 'compaction' AND syscall = 'read') = 100, 'yes', 'no'),
		if((SELECT count(DISTINCT file_offset) FROM syscalls WHERE syscall = 'write' AND path LIKE '%/redis.log') = 20, 'yes', 'no'),
		if((SELECT count(*) FROM syscalls WHERE syscall LIKE 'unlink%' AND path LIKE '%/.es_temp_file') = 1, 'yes', 'no'),
		if((SELECT count(DISTINCT hash) FROM syscalls WHERE path LIKE '%/app.log' AND hash IS NOT NULL AND ret = 26) = 1, 'yes', 'no')"
}

heading "Least detail for each case"
{
	echo "detail,RocksDB: threads,Redis: offsets of a log,Elasticsearch: paths of arguments,Fluent Bit: signatures,paper"
	while IFS='|' read -r name flags paper; do
		read -r -a words <<<"$flags"
		record modes "${words[@]}" -- /usr/bin/python3 "$work/cases.py" "$work"
		rm -f -- "$work/redis.log" "$work/app.log"
		echo "$name,$(sees modes),$paper"
	done <<'MODES'
raw|--detail raw|yes no no no
fds|--detail fds|yes yes no no
full|--detail full|yes yes yes no
full with hashes|--content hash|yes yes yes yes
MODES
} | figure table

# asks NAME PATTERN: whether the trace has it.
asks() { if grep -qE -- "$2" "$1"; then echo yes; else echo no; fi; }

heading "Other tracers"
{
	echo "tracer,calls,offset of a read without one,type of a file,name of the thread,paths of descriptors,signature of bytes"
	for tracer in strace-names perf bpftrace; do
		program=${tracer%-names}
		if ! have "$program"; then
			echo "$program,not installed,,,,,"
			continue
		fi
		under "$tracer" "$work/trace" /usr/bin/python3 "$work/cases.py" "$work" >"$work/output" 2>&1
		rm -f -- "$work/redis.log" "$work/app.log"
		events=$(traced "$tracer" "$work/trace")
		# The reads of the thread: its name stands before or behind them. Offsets, types and signatures have no
		# place in the lines of these tracers.
		name=$(asks "$work/trace" 'compaction[>/ ].* (= 16$|read\()|^[0-9]+ 0 16 .* compaction$')
		path=$(asks "$work/trace" 'write\((fd: )?[0-9]*<[^>]*redis.log')
		echo "$program,${events%,*},no,no,$name,$path,no"
	done
	yes() { printf "if(%s, 'yes', 'no')" "$1"; }
	echo "fathom,$(value modes "SELECT (SELECT seen FROM session),
		$(yes "(SELECT count(file_offset) = 100 FROM syscalls WHERE comm = 'compaction' AND syscall = 'read')"),
		$(yes "(SELECT count(*) > 0 FROM files WHERE file_type = 'regular')"),
		$(yes "(SELECT count(*) > 0 FROM syscalls WHERE comm = 'compaction')"),
		$(yes "(SELECT count(*) = 20 FROM syscalls WHERE syscall = 'write' AND path LIKE '%/redis.log')"),
		$(yes "(SELECT count(*) > 0 FROM syscalls WHERE hash IS NOT NULL)")")"
} | figure table
cat <<'TEXT'

DIO's table 4: no other of ten tools has offsets; Sysdig and DIO have types of files; five have names
of threads; DIO and LongLine analyze while they trace.
TEXT
where_sessions_are
