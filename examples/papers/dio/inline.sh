#!/usr/bin/env bash
# DIO, figure 17: the time from the start of a load until all of it can be asked about, when the
# recorder stores it at once (inline), when raw records are converted later (offline), and when a
# log of strace is imported.
#
#   examples/papers/dio/inline.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin dio-inline "$@"
need command strace strace
server=$(compiled fileserver)
calls=${quick:+5000}
calls=${calls:-500000}

serve() {
	rm -rf -- "$work/files"
	mkdir -- "$work/files"
	clock "$@" "$server" "$work/files" 4 "$calls" 2>/dev/null
}

# ask SESSION: seconds of a query on all calls.
ask() {
	clock "$fathom" query "$(fathom_on "$1")" "SELECT syscall, count(*), sum(dur_ns) FROM syscalls GROUP BY syscall" 2>/dev/null
}

answer() { value "$1" "SELECT count(*) FROM syscalls"; }

heading "Tracing, then parsing"
{
	echo "approach,tracing_s,parsing_s,query_s,calls,paper"
	tracing=$(serve record inline --)
	echo "fathom inline,$tracing,0,$(ask inline),$(answer inline),DIO inline: 26 min; 52 M of 210 M calls"
	tracing=$(serve record unused --raw "$work/raw" --)
	parsing=$(clock "$fathom" replay "$work/raw" --force -o "$(fathom_on offline)" 2>/dev/null)
	echo "fathom offline,$tracing,$parsing,$(ask offline),$(answer offline),DIO offline: 21 + 205 min; 108 M calls"
	calls=$((calls / 10))
	tracing=$(serve strace -f -ttt -T -yy -o "$work/trace")
	parsing=$(clock "$fathom" import "$work/trace" --force -o "$(fathom_on imported)" 2>/dev/null)
	echo "\"strace, import (1/10 of the calls)\",$tracing,$parsing,$(ask imported),$(answer imported),Sysdig offline: 24 + 627 min; 230 M calls"
} | figure table
where_sessions_are
