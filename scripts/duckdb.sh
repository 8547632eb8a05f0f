# shellcheck shell=bash
# DuckDB's prebuilt library: fetched once, checked, kept in the cache, and
# linked into the clone as .deps/duckdb/libduckdb.so.

duckdb_linked() { [ -e .deps/duckdb/libduckdb.so ]; }

setup_duckdb() {
	local arch dir
	arch=$(uname -m)
	mkdir -p .deps/duckdb
	if [ -n "${FATHOM_DUCKDB_LIB:-}" ]; then
		[ -f "$FATHOM_DUCKDB_LIB" ] || die 1 "FATHOM_DUCKDB_LIB: no such file: $FATHOM_DUCKDB_LIB"
		link_duckdb "$(readlink -f -- "$FATHOM_DUCKDB_LIB")"
		return
	fi
	[ "$arch" = x86_64 ] || die 1 "no DuckDB library is pinned for $arch" \
		"get libduckdb.so $duckdb_version from https://duckdb.org and run: FATHOM_DUCKDB_LIB=/path/to/libduckdb.so ./do ..."
	dir=$(cache_dir)/duckdb-$duckdb_version-$arch
	if [ ! -f "$dir/libduckdb.so" ] ||
		! check_sha256 "$dir/libduckdb.so" "$duckdb_library_sha256_x86_64"; then
		fetch_duckdb "$dir"
	fi
	link_duckdb "$dir/libduckdb.so"
}

# Replaced in one step: a build may be running in another terminal.
link_duckdb() {
	ln -s -- "$1" ".deps/duckdb/new.$$"
	mv -fT -- ".deps/duckdb/new.$$" .deps/duckdb/libduckdb.so
}

# fetch_duckdb DIR. The directory appears whole or not at all.
fetch_duckdb() {
	local dir=$1 work package
	have npm || (apt_install npm) || die 1 "npm is missing, which fetches DuckDB's library" \
		"install it, or run: FATHOM_DUCKDB_LIB=/path/to/libduckdb.so ./do ..."
	mkdir -p "$(dirname -- "$dir")"
	work=$(mktemp -d "$dir.XXXXXX")
	package=$duckdb_package_x86_64@$duckdb_package_version
	# Scripts of packages never run: only the file is wanted.
	(cd "$work" && logged "fetching DuckDB $duckdb_version" npm pack --ignore-scripts "$package") || {
		rm -rf -- "$work"
		die 1 "could not fetch $package" \
			"check the network, or run: FATHOM_DUCKDB_LIB=/path/to/libduckdb.so ./do ..."
	}
	mv -- "$work"/*.tgz "$work/package.tgz"
	if ! check_sha256 "$work/package.tgz" "$duckdb_package_sha256_x86_64"; then
		rm -rf -- "$work"
		die 1 "$package is not the file that is pinned in scripts/versions.sh (its SHA-256 differs)" \
			"do not use it; run ./do again, and report it when it happens twice"
	fi
	tar -xzf "$work/package.tgz" -C "$work" --no-same-owner --strip-components=1 \
		package/libduckdb.so package/LICENSE
	if ! check_sha256 "$work/libduckdb.so" "$duckdb_library_sha256_x86_64"; then
		rm -rf -- "$work"
		die 1 "libduckdb.so in $package is not the one that is pinned in scripts/versions.sh"
	fi
	rm -f -- "$work/package.tgz"
	chmod 755 "$work"
	rm -rf -- "$dir"
	mv -T -- "$work" "$dir"
}
