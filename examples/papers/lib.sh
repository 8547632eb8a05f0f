# shellcheck shell=bash
# What the examples of the papers share: figures, and programs that play the papers' loads.

# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../lib.sh"

# fathom_on SESSION: where a session of this name is.
fathom_on() { printf '%s' "$sessions/$1.fathom"; }

# compiled NAME: builds NAME.c, which is where the script is, and prints its path.
compiled() {
	"${CC:-cc}" -O2 -pthread -o "$work/$1" "$here/$1.c" || fail "cannot compile $1.c" "install a C compiler"
	printf '%s' "$work/$1"
}

# clock COMMAND...: seconds that the command takes; its output goes to standard error.
clock() {
	local start=$EPOCHREALTIME end
	"$@" >&2 || return
	end=$EPOCHREALTIME
	awk -v a="$start" -v b="$end" 'BEGIN { printf "%.3f", b - a }'
}

# mib PATH: how much room it takes.
mib() { du -sk -- "$1" | awk '{ printf "%.1f", $1 / 1024 }'; }

# facts SESSION: calls seen, stored and lost, CPU seconds and peak MiB of the recorder, MiB on disk.
facts() {
	local words
	words=$(value "$1" "SELECT seen, stored, lost, round(recorder_cpu_ns / 1e9, 2),
		round(recorder_peak_rss_bytes / 1048576)::BIGINT FROM session")
	printf '%s,%s' "$words" "$(mib "$(fathom_on "$1")")"
}

# with_tracefs COMMAND...: perf and bpftrace need tracefs, which is not mounted everywhere. The
# mount is gone with the command.
with_tracefs() {
	# shellcheck disable=SC2016 # the shell in the new name space expands it
	unshare -m sh -c 'mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"' sh "$@"
}

# under TRACER OUTPUT COMMAND...: runs a command under strace, perf trace, or bpftrace; `none`: without.
under() {
	local tracer=$1 output=$2
	shift 2
	case $tracer in
	none) "$@" ;;
	strace) strace -f -o "$output" "$@" ;;
	strace-paths) strace -f -ttt -T -yy -o "$output" "$@" ;;
	strace-names) strace -f -ttt -T -yy -Y -o "$output" "$@" ;;
	strace-content) strace -f -ttt -T -yy -s 16384 -o "$output" "$@" ;;
	perf) with_tracefs perf trace -o "$output" -- "$@" ;;
	bpftrace)
		# shellcheck disable=SC2016 # variables of bpftrace
		with_tracefs bpftrace -o "$output" -c "$*" -e '
			tracepoint:raw_syscalls:sys_enter /pid == cpid/ { @start[tid] = nsecs; }
			tracepoint:raw_syscalls:sys_exit /@start[tid]/ {
				printf("%d %d %d %d %s\n", tid, args->id, args->ret, nsecs - @start[tid], comm);
				delete(@start[tid]);
			}'
		;;
	esac
}

# traced TRACER OUTPUT: how many calls the output shows, and how many the tracer says that it lost.
traced() {
	local events lost
	case $1 in
	bpftrace) events=$(grep -cE '^[0-9]+ [0-9]+ -?[0-9]+ [0-9]+ ' "$2" || true) ;;
	*) events=$(grep -cE '(\)|resumed>.*\)) += ' "$2" || true) ;;
	esac
	lost=$(grep -oiE 'lost [0-9]+' "$2" "$2.errors" 2>/dev/null | awk '{ sum += $NF } END { print sum + 0 }')
	printf '%s,%s' "$events" "$lost"
}
