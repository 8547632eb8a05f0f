#!/usr/bin/env bash
# A log shipper that loses data after a rotation: it knows the log by its inode number, which
# the new log inherits from the old one.
#
#   examples/log-shipper/run.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin log-shipper "$@"
# Of the distribution's Python, whatever other there is.
need python pygtail python3-pygtail
need command logtail2 logtail

# ship SESSION HOW: the application and the shipper, and what arrived.
ship() {
	rm -rf -- "$work/logs"
	mkdir -- "$work/logs"
	# shellcheck disable=SC2016 # the shell that is recorded expands them
	record "$1" --content hash -- bash -c '
		/usr/bin/python3 "$1/shipper.py" "$2" "$3/app.log" "$3/shipped" &
		/usr/bin/python3 "$1/application.py" "$3/app.log"
		wait' ship "$here" "$2" "$work/logs"
	echo "written  $(value "$1" "SELECT sum(bytes)::BIGINT FROM syscalls WHERE call_writes(syscall) AND path LIKE '%/app.log'") bytes"
	echo "shipped  $(stat -c %s "$work/logs/shipped") bytes"
}

# Every read and write of the log, with where it was and the signature of its bytes.
accesses() {
	table "$1" "
		SELECT comm, syscall, f.ino, dense_rank() OVER (ORDER BY file_id) AS file, file_offset, ret,
			if(ret > 0, hash_hex(hash), '') AS signature
		FROM syscalls AS s JOIN files AS f USING (file_id)
		WHERE s.path LIKE '%/app.log' AND syscall IN ('read', 'write')
		QUALIFY row_number() OVER (PARTITION BY comm, syscall, file_id, file_offset, ret ORDER BY s.ts_ns) = 1
		ORDER BY s.ts_ns"
	echo
	echo "(of the same reads again and again the first)"
}

heading "Shipper with pygtail"
ship pygtail pygtail
echo
findings pygtail
echo
accesses pygtail
echo
diagnose pygtail

heading "Shipper that looks at the beginning of the file"
ship checked checked
echo
findings checked
echo
accesses checked

heading "Rotation that keeps the old file, so that its number is not free"
log=$work/app.log
printf 'the 26 bytes of event one\n' >"$log"
logtail2 -f "$log" >"$work/shipped"
mv -- "$log" "$log.1"
printf 'a new log, longer than the old one was\n' >"$log"
logtail2 -f "$log" >>"$work/shipped"
echo "renamed:  $(stat -c %s "$work/shipped") of 65 bytes shipped by logtail2"
rm -f -- "$log" "$log.1" "$log.offset"
printf 'the 26 bytes of event one\n' >"$log"
logtail2 -f "$log" >"$work/shipped"
rm -- "$log"
printf 'a new log, longer than the old one was\n' >"$log"
logtail2 -f "$log" >>"$work/shipped"
echo "removed:  $(stat -c %s "$work/shipped") of 65 bytes shipped by logtail2"
where_sessions_are
