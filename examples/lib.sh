# shellcheck shell=bash
# What the examples share: the program, a directory on a device, and its end.

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
	here=$(dirname -- "$(readlink -f -- "$0")")
	fathom=${FATHOM:-$here/../../target/release/fathom}
	[ -x "$fathom" ] || fail "no fathom at $fathom" "build it with ./do build, or set FATHOM"
	[ "$(id -u)" = 0 ] || fail "recording needs root" "run this with sudo"
	command -v fio >/dev/null || fail "fio is not installed" "install it with your packages"
	work=$(mktemp -d "${dir:-/var/tmp}/fathom-$name.XXXXXX")
	sessions=$work
	[ -n "$quick" ] || {
		sessions=$PWD/$name
		mkdir -p "$sessions"
	}
	trap 'rm -rf -- "$work"' EXIT
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

# balance SESSION: seen, stored, lost.
balance() {
	table "$1" "SELECT seen, stored, lost FROM session"
}
