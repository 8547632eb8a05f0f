#!/usr/bin/env bash
# An application and its log: 26 bytes, then the log is removed and a new one is begun,
# with 16 bytes first, more later.
#
#   application.sh LOG
set -euo pipefail
log=$1
printf 'the 26 bytes of event one\n' >"$log"
sleep 1
old=$(stat -c %i "$log")
# The new file takes the number of the old one, unless another program was faster.
for _ in $(seq 50); do
	rm -- "$log"
	: >"$log"
	[ "$(stat -c %i "$log")" != "$old" ] || break
	: >"$log.other"
done
rm -f -- "$log.other"
printf '16 bytes: event\n' >>"$log"
sleep 1
printf 'the 26 bytes of event six\n' >>"$log"
sleep 1
