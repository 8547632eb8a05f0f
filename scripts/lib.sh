# shellcheck shell=bash
# Messages, errors, privileges, and running long commands quietly.

say() { printf '%s\n' "$*"; }
note() { printf 'fathom: %s\n' "$*" >&2; }

# die STATUS WHAT [WHAT-TO-DO]
die() {
	local status=$1
	note "error: $2"
	[ $# -lt 3 ] || note "       $3"
	exit "$status"
}

no_arguments() {
	[ $# -eq 1 ] || die 2 "./do $1 takes no arguments: $2" "./do help lists the commands"
}

have() { command -v -- "$1" >/dev/null 2>&1; }

# at_least VERSION MINIMUM: compares dotted numbers.
at_least() {
	[ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# First dotted number in the text on standard input.
first_version() {
	sed -n 's/^[^0-9]*\([0-9][0-9.]*[0-9]\).*/\1/p' | head -n 1
}

is_root() { [ "$(id -u)" -eq 0 ]; }

# Runs a command as root. Call need_root first: it explains failures.
as_root() {
	if is_root; then "$@"; else sudo -- "$@"; fi
}

# need_root WHY: makes sure that as_root will work, asking for a password
# now rather than in the middle of something.
need_root() {
	is_root && return
	have sudo || die 1 "$1 needs root, and there is no sudo" \
		"run ./do as root, or install sudo"
	sudo -n true 2>/dev/null && return
	[ -t 0 ] || die 1 "$1 needs root, and sudo asks for a password" \
		"run ./do from a terminal, or as root"
	note "$1 needs root: sudo may ask for your password"
	sudo -v || die 1 "sudo refused" "run ./do as root"
}

# logged WHAT COMMAND...: runs a command with its output in a log file and one
# line of progress on the terminal; shows the end of the log when it fails.
logged() {
	local what=$1 log pid status=0 start=$SECONDS next=30 frame=0
	shift
	mkdir -p "$root/.deps"
	log=$(mktemp "$root/.deps/log.XXXXXX")
	"$@" >"$log" 2>&1 </dev/null &
	pid=$!
	[ -t 2 ] || note "$what ..."
	while kill -0 "$pid" 2>/dev/null; do
		if [ -t 2 ]; then
			printf '\r\033[Kfathom: %s ... %d s %s' "$what" $((SECONDS - start)) \
				"$(printf '%.*s' $((frame % 4)) '...')" >&2
			frame=$((frame + 1))
		elif [ $((SECONDS - start)) -ge $next ]; then
			note "$what: $next s so far"
			next=$((next + 30))
		fi
		sleep 0.2
	done
	wait "$pid" || status=$?
	[ ! -t 2 ] || printf '\r\033[K' >&2
	if [ "$status" -ne 0 ]; then
		note "error: $what failed after $((SECONDS - start)) s (exit status $status); the end of its output:"
		tail -n 25 "$log" | sed 's/^/    /' >&2
		note "all of it: $log"
		return "$status"
	fi
	[ $((SECONDS - start)) -lt 2 ] || note "$what: done in $((SECONDS - start)) s"
	rm -f "$log"
}

# Directory for downloads, outside the clone so that several clones share it.
cache_dir() {
	if [ -n "${FATHOM_CACHE:-}" ]; then
		say "$FATHOM_CACHE"
	elif [ -n "${XDG_CACHE_HOME:-}" ]; then
		say "$XDG_CACHE_HOME/fathom"
	elif [ -n "${HOME:-}" ]; then
		say "$HOME/.cache/fathom"
	else
		say "$root/.deps/cache"
	fi
}

# check_sha256 FILE HASH
check_sha256() {
	[ "$(sha256sum <"$1" | cut -d ' ' -f 1)" = "$2" ]
}