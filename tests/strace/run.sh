#!/usr/bin/env bash
# run.sh PROGRAMS OUTPUTS: runs the programs of the list beside this script that are in the
# directory PROGRAMS one after the other, each in an empty directory below OUTPUTS. Leaves
# OUTPUTS/NAME.out, what it wrote, and OUTPUTS/status, how each ended.
set -euo pipefail

programs=$1 outputs=$2
list=$(dirname -- "$(readlink -f -- "$0")")/programs
while read -r name redirections <&3; do
	case $name in '' | '#'*) continue ;; esac
	mkdir -p "$outputs/$name"
	status=0
	(
		exec 3<&- </dev/null >"$outputs/$name.out" 2>"$outputs/$name.err"
		cd -- "$outputs/$name"
		eval "exec timeout 60 $(printf %q "$programs/$name") $redirections"
	) || status=$?
	printf '%s %s\n' "$name" "$status" >>"$outputs/status"
done 3<"$list"
