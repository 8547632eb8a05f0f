# shellcheck shell=bash
# What the examples share: the program, the programs that it records, a directory on a
# device, and its end.

root=$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")
# shellcheck source=scripts/lib.sh
. "$root/scripts/lib.sh"
# shellcheck source=scripts/packages.sh
. "$root/scripts/packages.sh"

# begin NAME [--quick] [DIR]: sets $fathom, $quick (1 or nothing), $work (a new directory in
# DIR, which has to lie on a device) and $sessions. Both directories are removed at the end,
# the sessions only with --quick.
begin() {
	local name=$1 dir=
	shift
	quick=
	for word in "$@"; do
		case $word in
		--quick) quick=1 ;;
		-*)
			echo "usage: $0 [--quick] [DIR ON A DEVICE]" >&2
			exit 2
			;;
		*) dir=$word ;;
		esac
	done
	# shellcheck disable=SC2034 # where an example finds its own programs
	here=$(dirname -- "$(readlink -f -- "$0")")
	fathom=${FATHOM:-$root/target/release/fathom}
	[ -x "$fathom" ] || fail "no fathom at $fathom" "build it with ./do build, or set FATHOM"
	[ "$(id -u)" = 0 ] || fail "recording needs root" "run this with sudo"
	PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
	work=$(mktemp -d "${dir:-/var/tmp}/fathom-$name.XXXXXX")
	sessions=$work
	[ -n "$quick" ] || {
		sessions=$PWD/$name
		mkdir -p "$sessions"
	}
	servers=()
	trap finish EXIT
}

# Ends servers that still run, the last first, and removes what was made.
finish() {
	local server
	for server in "${servers[@]}"; do kill "$server" 2>/dev/null || true; done
	wait 2>/dev/null || true
	rm -rf -- "$work"
}

# need KIND NAME PACKAGE...: installs the first of the packages that there is when the
# command, the file or the module of Python is missing.
need() {
	install_packages "$*" ''
}

# await SECONDS COMMAND...: until the command succeeds.
await() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || fail "waited in vain for: $*" "see what it says by hand"
		sleep 0.1
	done
}

fail() {
	printf '%s: %s: %s\n' "$0" "$1" "$2" >&2
	exit 1
}

# record SESSION WORDS...: records what the words say, quietly.
record() {
	local session=$sessions/$1.fathom
	shift
	"$fathom" record --quiet --force -o "$session" "$@"
}

# heading TEXT
heading() { printf '\n## %s\n\n' "$1"; }

# table SESSION SQL: the answer as a table.
table() { "$fathom" query "$sessions/$1.fathom" "$2"; }

# value SESSION SQL: the one value that it answers.
value() { "$fathom" query "$sessions/$1.fathom" --format csv "$2" | tail -n 1; }

# csv SESSION SQL: the answer as CSV.
csv() { "$fathom" query "$sessions/$1.fathom" --format csv "$2"; }

# figure WORDS...: tables and pictures of CSV, see papers/figures.py.
figure() { /usr/bin/python3 "$root/examples/papers/figures.py" "$@"; }

# picture NAME: the file of a picture, next to the sessions.
picture() { printf '%s' "$sessions/$1.svg"; }

# balance SESSION: seen, stored, lost.
balance() {
	table "$1" "SELECT seen, stored, lost FROM session"
}

# findings SESSION: what the diagnosis says of it, a line each.
findings() {
	table "$1" "SELECT rule, severity, round(cost_ns / 1e6)::BIGINT AS cost_ms, title FROM findings"
}

# diagnose SESSION: all of it. Its exit status tells whether there is something.
diagnose() { "$fathom" diagnose "$sessions/$1.fathom" || [ $? -eq 1 ]; }

# compare BEFORE AFTER: what changed, the beginning. Its exit status tells whether it got worse.
compare() {
	"$fathom" diff "$sessions/$1.fathom" "$sessions/$2.fathom" >"$work/diff" || [ $? -eq 1 ]
	head -n "${3:-40}" "$work/diff"
}

# The last line of a long run.
where_sessions_are() {
	[ -n "$quick" ] || printf '\nSessions are in %s: fathom report, fathom query, fathom ui.\n' "$sessions"
}
