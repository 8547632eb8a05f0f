# shellcheck shell=bash
# Installs what a command needs: packages, a Rust toolchain, DuckDB's library,
# Node.js and the packages that the page is built with.

# shellcheck source=scripts/packages.sh
. "$root/scripts/packages.sh"
# shellcheck source=scripts/rust.sh
. "$root/scripts/rust.sh"
# shellcheck source=scripts/duckdb.sh
. "$root/scripts/duckdb.sh"
# shellcheck source=scripts/node.sh
. "$root/scripts/node.sh"
# shellcheck source=scripts/page.sh
. "$root/scripts/page.sh"
# shellcheck source=scripts/python.sh
. "$root/scripts/python.sh"

# setup WHAT: run, test or bench. Does nothing, quickly, when an earlier run
# with the same inputs succeeded and the things are still there.
setup() {
	local what=$1 needs wants='' stamp key
	case $what in
	run) needs=$needs_run ;;
	test)
		needs=$needs_run$needs_test
		wants=$wants_test
		;;
	bench)
		needs=$needs_run$needs_bench
		wants=$wants_bench
		;;
	*) die 2 "./do setup: unknown set: $what" "one of: run, test, bench" ;;
	esac
	[ "$(uname -s)" = Linux ] || die 1 "fathom runs on Linux only"
	# Debian leaves the directories of mkfs and others out of a user's PATH.
	PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
	mkdir -p .deps
	stamp=.deps/ready-$what
	key=$({
		cat ./do scripts/*.sh "${python_wanted[@]}" Cargo.toml web/package-lock.json /etc/os-release 2>/dev/null
		say "${FATHOM_DUCKDB_LIB:-}" "${CLANG:-}"
	} | sha256sum)
	if [ -f "$stamp" ] && [ "$(<"$stamp")" = "$key" ] &&
		use_chosen_rust "$what" && duckdb_linked && use_chosen_node && page_packages_there &&
		[ -z "$(missing_packages "$needs")" ]; then
		return
	fi
	rm -f "$stamp"
	install_packages "$needs" "$wants"
	check_clang
	setup_rust "$what"
	setup_duckdb
	setup_node
	setup_page
	[ "$what" != test ] || setup_python
	printf '%s\n' "$key" >"$stamp"
}

check_clang() {
	local version
	version=$("${CLANG:-clang}" --version | first_version) || version=
	at_least "${version:-0}" "$min_clang" || die 1 \
		"${CLANG:-clang} is version ${version:-unknown}, the BPF programs need $min_clang or newer" \
		"install one and name it: CLANG=clang-$min_clang ./do ..."
}
