# shellcheck shell=bash
# DuckDB's prebuilt library: fetched once, checked, kept in the cache, and
# linked into the clone as .deps/duckdb/libduckdb.so.

duckdb_linked() { [ -e .deps/duckdb/libduckdb.so ]; }

setup_duckdb() {
	local arch
	arch=$(uname -m)
	mkdir -p .deps/duckdb
	if [ -n "${FATHOM_DUCKDB_LIB:-}" ]; then
		[ -f "$FATHOM_DUCKDB_LIB" ] || die 1 "FATHOM_DUCKDB_LIB: no such file: $FATHOM_DUCKDB_LIB"
		link_duckdb "$(readlink -f -- "$FATHOM_DUCKDB_LIB")"
		return
	fi
	get_duckdb "$arch"
	link_duckdb "$(duckdb_dir "$arch")/libduckdb.so"
}

duckdb_dir() { say "$(cache_dir)/duckdb-$(pinned duckdb_version "$1")-$1"; }

# get_duckdb MACHINE: the library for such machines, in duckdb_dir.
get_duckdb() {
	local arch=$1 dir
	[ -n "$(pinned duckdb_version "$arch")" ] || die 1 "no DuckDB library is pinned for $arch" \
		"get libduckdb.so $duckdb_version_x86_64 from https://duckdb.org and run: FATHOM_DUCKDB_LIB=/path/to/libduckdb.so ./do ..."
	dir=$(duckdb_dir "$arch")
	if [ ! -f "$dir/libduckdb.so" ] ||
		! check_sha256 "$dir/libduckdb.so" "$(pinned duckdb_library_sha256 "$arch")"; then
		fetch_duckdb "$arch" "$dir"
	fi
}

# Replaced in one step: a build may be running in another terminal.
link_duckdb() {
	ln -s -- "$1" ".deps/duckdb/new.$$"
	mv -fT -- ".deps/duckdb/new.$$" .deps/duckdb/libduckdb.so
}

# fetch_duckdb MACHINE DIR. The directory appears whole or not at all.
fetch_duckdb() {
	local arch=$1 dir=$2 work package
	have npm || (apt_install npm) || die 1 "npm is missing, which fetches DuckDB's library" \
		"install it, or run: FATHOM_DUCKDB_LIB=/path/to/libduckdb.so ./do ..."
	mkdir -p "$(dirname -- "$dir")"
	work=$(mktemp -d "$dir.XXXXXX")
	package=$(pinned duckdb_package "$arch")
	# Scripts of packages never run: only the file is wanted.
	(cd "$work" && logged "fetching DuckDB $(pinned duckdb_version "$arch")" npm pack --ignore-scripts "$package") || {
		rm -rf -- "$work"
		die 1 "could not fetch $package" \
			"check the network, or run: FATHOM_DUCKDB_LIB=/path/to/libduckdb.so ./do ..."
	}
	mv -- "$work"/*.tgz "$work/package.tgz"
	if ! check_sha256 "$work/package.tgz" "$(pinned duckdb_package_sha256 "$arch")"; then
		rm -rf -- "$work"
		die 1 "$package is not the file that is pinned in scripts/versions.sh (its SHA-256 differs)" \
			"do not use it; run ./do again, and report it when it happens twice"
	fi
	tar -xzf "$work/package.tgz" -C "$work" --no-same-owner --strip-components=1 \
		package/libduckdb.so package/LICENSE
	if ! check_sha256 "$work/libduckdb.so" "$(pinned duckdb_library_sha256 "$arch")"; then
		rm -rf -- "$work"
		die 1 "libduckdb.so in $package is not the one that is pinned in scripts/versions.sh"
	fi
	rm -f -- "$work/package.tgz"
	chmod 755 "$work"
	rm -rf -- "$dir"
	mv -T -- "$work" "$dir"
}
