#!/usr/bin/env bash
# Everyday tools: what the diagnosis says of git, pip, apt and a compiler.
#
#   examples/everyday/run.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin everyday "$@"
need command git git
need command gcc gcc
need file /usr/bin/python3 python3
need python ensurepip python3-venv

files=${quick:+60}
files=${files:-400}
export HOME=$work GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_CONFIG_NOSYSTEM=1

# tool NAME COMMAND...: in $work, quietly; then what was recorded and what was found.
tool() {
	local session=$1
	shift
	(cd "$work" && record "$session" -- "$@" >"$work/output" 2>&1) || {
		tail -n 20 "$work/output" >&2
		fail "$session ended with an error" "its output is above"
	}
	heading "$session"
	findings "$session"
	echo
	table "$session" "
		SELECT (SELECT seen FROM session) AS calls, count(DISTINCT pid) AS processes,
			count(DISTINCT file_id) FILTER (syscall LIKE 'open%') AS files,
			count(*) FILTER (errno = 'ENOENT') AS not_found,
			count(*) FILTER (syscall IN ('fsync', 'fdatasync')) AS syncs,
			(sum(dur_ns) / 1e6)::DECIMAL(9, 1) AS ms_in_calls
		FROM syscalls"
}

# What they work on: a directory of sources.
mkdir -- "$work/source"
for number in $(seq "$files"); do
	printf '#include <stdio.h>\n#include <stdlib.h>\nint f%s(int x) { return x * %s + puts("%s"); }\n' \
		"$number" "$number" "$number" >"$work/source/f$number.c"
done

git init -q -b main "$work/repository"
cp -- "$work"/source/*.c "$work/repository"
tool git-add git -C repository add .
tool git-commit git -C repository commit -q -m first
tool git-commit-fsync git -C repository -c core.fsync=all commit -q --allow-empty -m second
tool git-status git -C repository status --short
[ -n "$quick" ] || tool git-clone git clone -q --no-local repository clone

[ -n "$quick" ] || tool gcc gcc -O1 -c -o f.o source/f1.c
# shellcheck disable=SC2016 # the shell that is recorded expands it
tool gcc-all sh -c 'for file in source/f?.c; do gcc -O1 -c -o "${file%.c}.o" "$file"; done; gcc -shared -o f.so source/*.o'

/usr/bin/python3 -m venv --without-pip "$work/venv"
pip=$(find /usr/share/python-wheels /usr/lib/python3* -name 'pip-*.whl' 2>/dev/null | head -n 1)
if [ -n "$pip" ]; then
	# Without a network: pip installs itself, from the wheel that the distribution has.
	tool pip-install "$work/venv/bin/python" "$pip/pip" install --no-index --no-cache-dir --disable-pip-version-check "$pip"
	[ -n "$quick" ] || tool pip-list "$work/venv/bin/python" -m pip list --disable-pip-version-check
fi

if have apt-get; then
	# A repository of the directory's own, and apt's state beside it: the machine's stays as it is.
	mkdir -p -- "$work/repo/package/DEBIAN" "$work/repo/package/opt" "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
	printf 'Package: example\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: example\n' \
		>"$work/repo/package/DEBIAN/control"
	cp -r -- "$work/source" "$work/repo/package/opt/"
	dpkg-deb -b "$work/repo/package" "$work/repo/example_1_all.deb" >/dev/null
	(
		cd "$work/repo"
		printf 'Package: example\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nFilename: ./example_1_all.deb\nSize: %s\nSHA256: %s\nDescription: example\n\n' \
			"$(stat -c %s example_1_all.deb)" "$(sha256sum <example_1_all.deb | cut -d ' ' -f 1)" >Packages
	)
	echo "deb [trusted=yes] file:$work/repo ./" >"$work/apt/sources.list"
	mkdir -p -- "$work/apt/dpkg"
	: >"$work/apt/dpkg/status"
	apt=(apt-get -q -y -o "Dir::Etc::sourcelist=$work/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::lists=$work/apt/lists" -o "Dir::Cache=$work/apt/cache" -o "Dir::State::status=$work/apt/dpkg/status"
		-o APT::Sandbox::User=root -o Debug::NoLocking=true)
	tool apt-update "${apt[@]}" update
	[ -n "$quick" ] || tool apt-download "${apt[@]}" download example
	[ -n "$quick" ] || tool apt-unpack dpkg-deb -x repo/example_1_all.deb unpacked
fi
where_sessions_are
