#!/usr/bin/env bash
# A Python program that saves a document in place, by a rename, and safely.
#
#   examples/unsafe-save/run.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin unsafe-save "$@"
need file /usr/bin/python3 python3

times=${quick:+5}
times=${times:-20}

for how in rewrite rename safe; do
	heading "$how"
	mkdir -p "$work/$how"
	record "$how" -- /usr/bin/python3 "$here/save.py" "$how" "$work/$how" "$times"
	findings "$how"
	echo
	# The second time: the first has nothing to lose.
	table "$how" "
		SELECT syscall, replace(path, '$work/', '') AS path, coalesce(flags, '') AS flags, ret
		FROM syscalls WHERE path LIKE '$work/%' AND ts_ns >= (
			SELECT ts_ns FROM syscalls WHERE syscall = 'openat' AND path LIKE '$work/$how/%' AND flags LIKE '%O_CREAT%'
			ORDER BY ts_ns LIMIT 1 OFFSET 1)
		ORDER BY ts_ns LIMIT 11"
	[ "$how" = safe ] || { echo && diagnose "$how"; }
done
where_sessions_are
