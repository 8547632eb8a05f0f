#!/usr/bin/env bash
# Copies the files of a server to nowhere, several at a time, until the time is over.
#
#   backup.sh SECONDS PIDS FILE...
set -euo pipefail
end=$((SECONDS + $1))
pids=$2
shift 2
while [ "$SECONDS" -lt "$end" ]; do
	copies=()
	for file in "$@"; do
		dd if="$file" of=/dev/null bs=4M iflag=direct status=none &
		copies+=($!)
	done
	printf '%s\n' "${copies[@]}" >>"$pids"
	wait "${copies[@]}"
done
