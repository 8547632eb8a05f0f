#!/usr/bin/env bash
# DIO, figures 5a to 5d, with Fluent Bit itself: every access to app.log of an application and of
# Fluent Bit, by offset, for both files that had this name and one inode number; with a signature of
# the bytes. Once Fluent Bit runs all the time, once it is restarted while the file is replaced.
# Fluent Bit is not in Debian: FLUENT_BIT has the paths of one or more of its programs fluent-bit,
# with colons between them. The paper has versions 1.4.0 and 2.0.5.
#
#   FLUENT_BIT=PROGRAM[:PROGRAM...] examples/papers/dio/fluent_bit.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin dio-fluent-bit "$@"
need file /usr/bin/python3 python3
IFS=: read -r -a programs <<<"${FLUENT_BIT:-$(command -v fluent-bit || true)}"
[ "${#programs[@]}" -gt 0 ] || fail "no program fluent-bit" \
	"set FLUENT_BIT to its path, or to those of several versions with colons between them (built with in_tail, out_stdout, and SQLite)"
# How long a second event may take that is not lost, seconds.
patience=${quick:+6}
patience=${patience:-12}

# What is recorded: Fluent Bit, and the application of the paper. Fluent Bit says on standard output
# what it ships.
cat >"$work/case.sh" <<'SH'
program=$1 log=$2 shipped=$3 patience=$4 how=$5
ship() {
	"$program" -f 1 -i tail -p "path=$log" -p "db=$log.db" -p refresh_interval=1 -p rotate_wait=1 \
		-o stdout -p format=json_lines -m '*' >>"$shipped" 2>>"$shipped.errors" &
	shipper=$!
}
end() {
	kill "$shipper"
	wait "$shipper"
}

# until_true SECONDS COMMAND...
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@" 2>/dev/null; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}
runs() { [ -s "$log.db" ]; }
has_shipped() { [[ $(<"$shipped") == *"$1"* ]]; }

ship
until_true 20 runs
printf 'the 26 bytes of event one\n' >"$log"
until_true 20 has_shipped 'event one'
old=$(stat -c %i "$log")
[ "$how" = running ] || end
rm "$log"
# The number is free once Fluent Bit has closed the file.
is_free() {
	: >"$log.other"
	[ "$(stat -c %i "$log.other")" = "$old" ]
	local is=$?
	rm "$log.other"
	return $is
}
until_true 30 is_free
printf '16 bytes: event\n' >"$log"
[ "$how" = running ] || ship
until_true "$patience" has_shipped '16 bytes'
end
[ "$(stat -c %i "$log")" = "$old" ]
SH

# experiment PROGRAM VERSION running|restarted
experiment() {
	local program=$1 version=$2 how=$3 attempt accesses lost
	local session=fluent-bit-$version-$how
	for attempt in 1 2 3; do
		rm -rf -- "$work/logs" "$work/shipped"
		mkdir -- "$work/logs"
		if record "$session" --content hash -- bash "$work/case.sh" "$program" "$work/logs/app.log" "$work/shipped" "$patience" "$how"; then break; fi
		[ "$attempt" != 3 ] || {
			tail -n 20 "$work/shipped.errors" >&2
			fail "app.log did not get the number of the one before" "other programs took it: try again, or name another directory"
		}
	done
	accesses="
		WITH accesses AS (
			SELECT s.ts_ns, if(call_writes(syscall), 'app', 'fluent-bit') AS program, syscall, f.ino, file_offset, ret,
				dense_rank() OVER (ORDER BY s.file_id) AS file, if(ret > 0, hash_hex(hash), '') AS signature
			FROM syscalls AS s JOIN files AS f USING (file_id)
			WHERE s.path = '$work/logs/app.log' AND syscall IN ('read', 'write')
		)"
	heading "Accesses to app.log: Fluent Bit $version, $how"
	csv "$session" "$accesses
		SELECT program, syscall, file, ino, file_offset, ret AS bytes, signature FROM accesses
		QUALIFY row_number() OVER (PARTITION BY program, syscall, file, file_offset, ret ORDER BY ts_ns) = 1
		ORDER BY ts_ns" | figure table
	echo
	lost=$(value "$session" "$accesses,
		bytes AS (SELECT program, file, unnest(range(file_offset, file_offset + ret)) AS byte FROM accesses WHERE ret > 0)
		SELECT count(*) FROM (
			SELECT file, byte FROM bytes WHERE program = 'app' EXCEPT SELECT file, byte FROM bytes WHERE program = 'fluent-bit'
		)")
	echo "bytes that the app wrote and Fluent Bit never read: $lost"
	echo "lines that Fluent Bit shipped: $(grep -c '"log"' "$work/shipped" || true)"
	csv "$session" "$accesses
		SELECT (ts_ns - (SELECT min(ts_ns) FROM accesses)) / 1e9 AS x, file_offset AS y,
			program || ' ' || syscall || ', file ' || file AS series
		FROM accesses ORDER BY series" |
		figure dots "$(picture "$session")" --title "Offsets of app.log, two files of one name (Fluent Bit $version, $how)" --x "seconds" --y "byte of the file"
	echo
	findings "$session"
}

for program in "${programs[@]}"; do
	version=$("$program" --version 2>/dev/null | sed -n 's/^Fluent Bit v\([0-9.]*\).*/\1/p' | head -n 1)
	[ -n "$version" ] || fail "$program prints no version of Fluent Bit" "FLUENT_BIT has the paths of programs fluent-bit"
	for how in running restarted; do experiment "$program" "$version" "$how"; done
done
cat <<'TEXT'

running: Fluent Bit runs while app.log is replaced; restarted: it ends before and starts after.

DIO: Fluent Bit 1.4.0 reads the second file from byte 26, where it had stopped in the first: the 16
bytes at its beginning are lost. Version 2.0.5 reads from byte 0, and the signatures are equal.
TEXT
where_sessions_are
