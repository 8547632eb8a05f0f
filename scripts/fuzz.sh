# shellcheck shell=bash
# The mutation fuzzers (fuzz/): damaged captures, logs, sessions, their streams, SQL statements and requests.

# Of each target, with every ./do test.
fuzz_seconds=50

# build_fuzz: the fuzzers, with fathom's crates checked for overflows, and the program.
build_fuzz() {
	build_fathom || return
	note "building the fuzzers"
	cargo build --release --locked --workspace --bin fathom-fuzz --config fuzz/overflow.toml
}

# fuzz [TARGET...] [SECONDS], fuzz replay TARGET:SEED:CASE. What programs do is recorded as root;
# without it there is one capture that was made.
fuzz() {
	local arguments=() argument
	if [ "${1:-}" = replay ]; then
		[ $# -eq 2 ] || die 2 "./do fuzz replay takes one case" "it is named as TARGET:SEED:CASE"
		arguments=(--replay "$2")
	else
		for argument in "$@"; do
			case $argument in
			*[!0-9]* | '') arguments+=("$argument") ;;
			*) arguments+=(--seconds "$argument") ;;
			esac
		done
	fi
	build_fuzz || return
	run_fuzz "${arguments[@]}"
}

# run_fuzz ARGUMENT...: the fuzzers that are built. With the tests they are built without checks for
# overflows, for which fathom's crates would be compiled once more.
run_fuzz() { FATHOM_BIN=$root/target/release/fathom target/release/fathom-fuzz "$@"; }
