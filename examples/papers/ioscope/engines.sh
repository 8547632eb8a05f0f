#!/usr/bin/env bash
# IOscope, table 1 and figure 2: fio's engines and workloads. For each, the requests that fio logs,
# and the offsets that the recording has; pictures of the paper's three.
#
#   examples/papers/ioscope/engines.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin ioscope-engines "$@"
need command fio fio
size=${quick:+1m}
size=${size:-32m}
engines=(sync psync vsync pvsync pvsync2 posixaio libaio io_uring mmap)
workloads=(read write randread randwrite rw randrw)
if [ -n "$quick" ]; then
	engines=(psync posixaio mmap)
	workloads=(read randrw)
fi

head -c "$((${size%m} << 20))" /dev/urandom >"$work/data"
sync "$work/data"

# Requests of fio's log, by direction and offset, and of the recording, sorted.
logged() { awk '$2 == "read" || $2 == "write" { print $2, $3 } $3 == "read" || $3 == "write" { print $3, $4 }' "$work/fio.log" | sort; }

# A call with several buffers is one request.
recorded() {
	csv "$1" "SELECT if(call_writes(syscall), 'write', 'read') || ' ' || file_offset FROM syscalls
		WHERE path = '$work/data' AND class = 'data' AND ret > 0" | tail -n +2 | tr -d '"' | sort
}

{
	echo "engine,workload,fio,recorded,same,lost"
	for engine in "${engines[@]}"; do
		for workload in "${workloads[@]}"; do
			flags=()
			[ "$engine" != posixaio ] && [ "$engine" != libaio ] && [ "$engine" != io_uring ] || flags=(--iodepth=4)
			[ "$engine" != libaio ] || flags+=(--direct=1)
			name=$engine-$workload
			dd if="$work/data" iflag=nocache count=0 status=none
			rm -f -- "$work/fio.log"
			record "$name" -- fio --name=job --filename="$work/data" --rw="$workload" --bs=4k --size="$size" \
				--ioengine="$engine" --overwrite=1 --fallocate=none --invalidate=0 --fadvise_hint=0 \
				--write_iolog="$work/fio.log" --output="$work/output" "${flags[@]}"
			logged >"$work/logged"
			if [ "$engine" = mmap ]; then
				# A fault maps the pages around it, too, and with large folios more than the kernel reports: not each
				# access has a fault. But the faults must be accesses of fio, in fio's order.
				awk '$2 == "read" || $2 == "write" { print $3 } $3 == "read" || $3 == "write" { print $4 }' "$work/fio.log" >"$work/accesses"
				csv "$name" "SELECT file_offset // 4096 * 4096 FROM faults WHERE path = '$work/data' ORDER BY ts_ns" |
					tail -n +2 | uniq >"$work/faults"
				rows=$(wc -l <"$work/faults")
				found=$(awk 'NR == FNR { faults[++n] = $1; next } i < n && $1 == faults[i + 1] { i++ } END { print i + 0 }' "$work/faults" "$work/accesses")
				if [ "$rows" -gt 0 ] && [ "$found" = "$rows" ]; then same=faults; else same="no: $found"; fi
			else
				recorded "$name" >"$work/recorded"
				rows=$(wc -l <"$work/recorded")
				if cmp -s "$work/logged" "$work/recorded"; then same=yes; else same=no; fi
			fi
			echo "$engine,$workload,$(wc -l <"$work/logged"),$rows,$same,$(value "$name" "SELECT lost FROM session")"
		done
	done
} >"$work/table.csv"

heading "Requests of fio and rows of the recording"
figure table <"$work/table.csv"
cat <<'TEXT'

IOscope: sync, psync, pvsync, pvsync2, posixaio, and mmap with all six workloads.
yes: the same directions and offsets, in number too. faults: all faults are accesses of fio, in the
same order; the other accesses are to pages that were mapped already.
TEXT

# offsets SESSION TITLE: order of requests against offsets.
offsets() {
	csv "$1" "
		WITH accesses AS (
			SELECT ts_ns, file_offset, if(call_writes(syscall), 'write', 'read') AS series FROM syscalls
			WHERE path = '$work/data' AND class = 'data' AND ret > 0
			UNION ALL SELECT ts_ns, file_offset, 'fault, ' || coalesce(kind, '') FROM faults WHERE path = '$work/data'
		)
		SELECT row_number() OVER (ORDER BY ts_ns) AS x, file_offset / 1048576 AS y, series FROM accesses ORDER BY series" |
		figure dots "$(picture "$1")" --title "$2" --x "request" --y "MiB of the file"
}
[ ! -e "$(fathom_on mmap-read)" ] || offsets mmap-read "read, engine mmap"
[ ! -e "$(fathom_on posixaio-rw)" ] || offsets posixaio-rw "readwrite, engine posixaio"
[ ! -e "$(fathom_on psync-randrw)" ] || offsets psync-randrw "randreadwrite, engine psync"
where_sessions_are
