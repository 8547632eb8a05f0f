# shellcheck shell=bash
# Release archives: the full program with DuckDB's library beside it, and the
# small program that only records. On Debian also a package of the full one.

# shellcheck source=scripts/deb.sh
. scripts/deb.sh

make_dist() {
	local version name dir time files deb=
	version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version *= *"\(.*\)"/\1/p' Cargo.toml)
	name=fathom-$version-linux-$(uname -m)
	time=$(git log -1 --format=%ct 2>/dev/null) || time=$(stat -c %Y Cargo.lock)
	mkdir -p dist

	build_page
	release_build full
	dir=$(mktemp -d dist/.pack.XXXXXX)
	mkdir "$dir/$name"
	install -m 755 target/dist/release/fathom "$dir/$name/"
	install -m 755 .deps/duckdb/libduckdb.so "$dir/$name/"
	manuals "$dir/$name"
	licences "$dir/$name"
	[ ! -f "$(duckdb_licence)" ] || install -m 644 "$(duckdb_licence)" "$dir/$name/LICENSE-DUCKDB"
	pack "$dir" "$name" "$time"
	files=("$name.tar.gz" "$name-record.tar.gz")
	if command -v dpkg-deb >/dev/null; then
		deb=fathom_${version}_$(dpkg --print-architecture).deb
		make_deb "$dir/$name" "$version" "$time" "dist/$deb"
		files+=("$deb")
	else
		note "no Debian package: dpkg-deb is not installed"
	fi

	release_build record --no-default-features
	mkdir "$dir/$name-record"
	install -m 755 target/dist/release/fathom "$dir/$name-record/"
	manuals "$dir/$name-record"
	licences "$dir/$name-record"
	pack "$dir" "$name-record" "$time"
	rm -rf -- "$dir"
	(cd dist && sha256sum "${files[@]}" >"$name.sha256" && ls -l "${files[@]}" "$name.sha256")
	[ -z "$deb" ] || check_deb "dist/$deb"
}

# release_build WHAT [CARGO ARGUMENTS]. Of the whole workspace, so that dependencies have the
# features with which everything is tested. In a target directory of its own: the
# flags differ. The library is looked for beside the program only, and paths
# of this machine stay out of the program.
release_build() {
	local what=$1
	shift
	note "building the release ($what)"
	local flags=(
		-C "link-arg=-Wl,-rpath,\$ORIGIN:\$ORIGIN/../lib"
		"--remap-path-prefix=$root=/fathom"
		"--remap-path-prefix=${CARGO_HOME:-${HOME:-}/.cargo}=/cargo"
	)
	# Separated by a character that no path has.
	CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && printf '%s' "${flags[*]}") \
		cargo build --release --locked --target-dir target/dist --workspace --bin fathom "$@"
	strip --strip-debug target/dist/release/fathom
}

# manuals DIR: man pages and completions of the program in DIR, where packages have them.
manuals() {
	local share=$1/share
	mkdir -p "$share/bash-completion/completions" "$share/zsh/site-functions" \
		"$share/fish/vendor_completions.d"
	"$1/fathom" man-pages "$share/man/man1"
	"$1/fathom" completions bash >"$share/bash-completion/completions/fathom"
	"$1/fathom" completions zsh >"$share/zsh/site-functions/_fathom"
	"$1/fathom" completions fish >"$share/fish/vendor_completions.d/fathom.fish"
}

licences() {
	install -m 644 README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$1/"
	install -m 644 bpf/LICENSE-GPL-2.0 "$1/LICENSE-GPL-2.0"
}

duckdb_licence() { say "$(dirname -- "$(readlink -f .deps/duckdb/libduckdb.so)")/LICENSE"; }

# The same sources give the same archive.
pack() {
	tar -C "$1" --sort=name --mtime="@$3" --owner=0 --group=0 --numeric-owner -cf - "$2" |
		gzip -n -9 >"dist/$2.tar.gz"
	note "dist/$2.tar.gz"
}
