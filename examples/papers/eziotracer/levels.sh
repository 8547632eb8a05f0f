#!/usr/bin/env bash
# EZIOTracer, tables 1 and 3: the events of 32 threads at each level, from the function of the C library
# down to the device: fio that writes 4 KiB at a time, and a program that uses fwrite.
#
#   examples/papers/eziotracer/levels.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin eziotracer-levels "$@"
need command fio fio
writers=$(compiled writers)
threads=${quick:+4}
threads=${threads:-32}
kib=${quick:+256}
kib=${kib:-1024}

heading "Probes"
"$fathom" doctor >"$work/doctor" || true
state() { grep -E "$1" "$work/doctor" | awk '{ print $1 }' | head -n 1 | sed 's/^ok$/yes/; s/^limited$/not on this kernel/'; }
{
	echo "probe of IOTracer,level,probe of fathom,here"
	echo "vfs_write and vfs_read,VFS,layer vfs: the same functions,$(state 'layer vfs')"
	echo "generic_file_write_iter and generic_file_read_iter,page cache,hits and misses and dirtied pages by tracepoints,$(state 'filemap_get_pages')"
	echo "ext4_file_write_iter and ext4_file_read_iter,file system,ext4_sync_file and iomap_dio_rw by tracepoints; the functions with layer vfs,$(state 'iomap_dio_rw_begin')"
	echo "submit_bio,block,block_bio_queue,$(state 'block_bio_queue')"
	echo "bio_endio,block,block_rq_complete,$(state 'block_rq_complete')"
} | figure table

# levels SESSION FUNCTION BYTES: events at each level.
levels() {
	value "$1" "
		WITH writers AS (SELECT DISTINCT rid FROM syscalls WHERE syscall = 'write' AND path LIKE '$work/data/%')
		SELECT (SELECT count(*) FROM user_calls WHERE function = '$2' AND ret = $3),
			(SELECT count(*) FROM writers),
			(SELECT count(*) FROM slices SEMI JOIN writers USING (rid) WHERE layer = 'vfs'),
			(SELECT coalesce(sum(dirtied), 0)::BIGINT FROM pagecache SEMI JOIN writers USING (rid)),
			(SELECT count(*) FROM slices SEMI JOIN writers USING (rid) WHERE layer = 'fs'),
			(SELECT count(*) FROM bios WHERE submit_rid IN (SELECT rid FROM writers)),
			(SELECT lost FROM session)"
}

made=$((threads * kib / 4))
{
	echo "load,writes_made,user,system_calls,vfs,pages_dirtied,file_system,block,lost"
	for mode in buffered direct; do
		flags=()
		[ "$mode" = buffered ] || flags=(--direct=1)
		rm -rf -- "$work/data"
		mkdir -- "$work/data"
		record "$mode" --library libc.so.6:write -- fio --name=writer --directory="$work/data" --rw=write --bs=4k \
			--ioengine=sync --size="${kib}k" --thread --numjobs="$threads" --fallocate=none --output=/dev/null "${flags[@]}"
		echo "\"fio, $mode\",$made,$(levels "$mode" write 4096)"
	done
	rm -rf -- "$work/data"
	mkdir -- "$work/data"
	record stdio --library stdio -- "$writers" "$work/data" "$threads" $((kib * 1024)) 512
	echo "fwrite of 512 bytes,$((made * 8)),$(levels stdio fwrite 512)"
} >"$work/levels.csv"

heading "Events at each level"
figure table <"$work/levels.csv"
cat <<'TEXT'

EZIOTracer, 32 threads: through the page cache (100 MiB each) user 819,201, VFS 673,193, file system
673,193, block 0; past it (10 MiB each) user 81,921, VFS 80,867, file system 80,868, block 86,458.
TEXT

heading "From a function of the library down"
csv stdio "
	SELECT function, u.calls, s.system_calls, round(u.calls / s.system_calls, 1) AS calls_per_system_call,
		s.bytes AS bytes
	FROM (SELECT function, count(*) AS calls FROM user_calls GROUP BY function) AS u
	LEFT JOIN (
		SELECT function, count(*) AS system_calls, sum(syscalls.bytes)::BIGINT AS bytes
		FROM syscalls JOIN user_calls USING (user_call) GROUP BY function
	) AS s USING (function)
	ORDER BY u.calls DESC LIMIT 5" | figure table

heading "Part of the threads' lives in write"
{
	echo "mode,threads,percent_in_write"
	for mode in buffered direct; do
		csv "$mode" "SELECT '$mode', count(*), round(100 * sum(w.ns) / sum(life_ns))::INTEGER
			FROM contention JOIN (SELECT tid, sum(dur_ns) AS ns FROM syscalls WHERE syscall = 'write'
			AND path LIKE '$work/data/%' GROUP BY tid) AS w USING (tid)" | tail -n 1
	done
} | figure table
echo
echo "EZIOTracer, 32 threads: 67 % through the page cache, 29 % past it."
where_sessions_are
