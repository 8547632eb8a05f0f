#!/usr/bin/env bash
# The one entry point for working on fathom: `./do help` lists the commands.
# Needs bash and coreutils only; everything else is installed when missing.
set -euo pipefail

script=$(readlink -f -- "${BASH_SOURCE[0]}")
root=$(dirname -- "$script")
cd -- "$root"

# shellcheck source=scripts/versions.sh
. scripts/versions.sh
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
# shellcheck source=scripts/setup.sh
. scripts/setup.sh

usage() {
	cat <<'END'
usage: ./do COMMAND [ARGUMENTS]

  run              build, record a Redis server at work, print the report
  build            build target/release/fathom
  test             formatting, lints and every test, some of them on other
                   kernels, too, in an emulator
  test long        only what test leaves out because it takes long
  test kernels [NAME [FILTER...]]
                   only the tests on other kernels; those for arm64 (arm64,
                   arm64-6.1, arm64-counts) when named, and those of
                   exactness on 32 processors (6.12-smp32)
  test kernels two-guests
                   only the test of a set of two machines with clocks of
                   their own
  test lake [NAME...]
                   only the tests of shipped sessions in stores and query
                   engines: stores, iceberg, trino, opensearch; superset (the
                   dashboard in a browser), scale (a billion calls), and
                   smallest (as ./do test) when named
  fuzz [TARGET...] [SECONDS]
                   feed damaged captures, logs, sessions, streams, SQL and
                   requests to fathom, SECONDS a target (50)
  fuzz replay TARGET:SEED:CASE
                   one of them again
  bench [ARGS]     measure fathom's cost against other tracers
                   (./do bench --help lists its options)
  bench hooks [NAME...]
                   what an empty program costs at each kind of place, on this
                   kernel and on others in an emulator
  bench filters [NAME...]
                   what calls cost that filters leave out, on this kernel and
                   on others in an emulator
  bench page [CALLS|SESSION] [--minutes N] [--turns N]
                   how fast the page is on a session of so many calls (10 million)
  docs             build the documentation site into target/site/html
  dist             build and check archives, packages, and images under dist/
  fmt              format Rust, C and TypeScript sources
  lint             formatting and lints without the tests
  setup [WHAT]     only install what is missing: run (default), test or bench
  help             this text

Every command first installs what is missing: packages of the distribution
(through apt-get, with sudo when not root), a Rust toolchain, DuckDB's library,
Node.js and the packages that the page is built with. Nothing is installed when everything is there.

Environment
  FATHOM_CACHE       downloads are kept here (default ~/.cache/fathom)
  FATHOM_DUCKDB_LIB  use this libduckdb.so instead of downloading one
  CLANG              the clang that compiles the BPF programs
  FATHOM_KERNEL_PATIENCE
                     seconds that the tests on another kernel may take (1800)
END
}

# Name of the built program, for other scripts.
fathom=target/release/fathom

# Features that dev-dependencies turn on.
features_of_tests=$(printf 'fathom-%s/types ' diagnose diff model path report set top why)

build_fathom() {
	build_page
	note "building fathom (cargo build --release)"
	# With the features of the tests, so that what is built for one is there for the other: the whole
	# workspace is selected, and their crates describe what they serialize.
	cargo build --release --locked --workspace --bin fathom --features "$features_of_tests"
}

main() {
	local command=${1:-help}
	[ $# -eq 0 ] || shift
	case $command in
	help | -h | --help)
		usage
		;;
	setup)
		setup "${1:-run}"
		note "everything is installed"
		;;
	build)
		no_arguments "$command" "$@"
		setup run
		build_fathom
		say "$fathom"
		;;
	run)
		no_arguments "$command" "$@"
		setup run
		build_fathom
		. scripts/showcase.sh
		showcase
		;;
	test)
		case ${1:-} in
		kernels | lake | long) ;;
		*) no_arguments "$command" "$@" ;;
		esac
		setup test
		. scripts/checks.sh
		. scripts/dist.sh
		. scripts/docs.sh
		. scripts/fuzz.sh
		. scripts/kernels.sh
		. scripts/two_guests.sh
		. scripts/arm64.sh
		. scripts/strace_programs.sh
		. scripts/lake.sh
		case ${1:-} in
		kernels) kernel_tests "${@:2}" ;;
		lake) lake_tests "${@:2}" ;;
		long) long_tests ;;
		*) all_tests ;;
		esac
		;;
	fuzz)
		setup test
		. scripts/fuzz.sh
		build_page
		fuzz "$@"
		;;
	docs)
		no_arguments "$command" "$@"
		setup test
		. scripts/docs.sh
		build_site || die 1 "the documentation site was not built"
		say target/site/html/index.html
		;;
	lint)
		no_arguments "$command" "$@"
		setup test
		. scripts/checks.sh
		all_lints
		;;
	fmt)
		no_arguments "$command" "$@"
		setup test
		. scripts/checks.sh
		format_sources
		;;
	bench)
		if [ "${1:-}" = hooks ]; then
			setup test
			. scripts/kernels.sh
			build_fathom
			hook_costs "${@:2}"
			return
		fi
		if [ "${1:-}" = filters ]; then
			setup test
			. scripts/kernels.sh
			build_fathom
			cargo build --release --locked --workspace --bin fathom-bench
			filter_costs "${@:2}"
			return
		fi
		if [ "${1:-}" = page ]; then
			# Chromium, and fio for what is recorded.
			setup test
			setup bench
			build_fathom
			. scripts/bench_page.sh
			bench_page "${@:2}"
			return
		fi
		setup bench
		build_fathom
		cargo run --release --locked -p fathom-benches --bin fathom-bench -- "$@"
		;;
	dist)
		no_arguments "$command" "$@"
		setup run
		. scripts/dist.sh
		make_dist
		;;
	*)
		usage >&2
		die 2 "unknown command: $command" "the commands are listed above"
		;;
	esac
}

main "$@"
