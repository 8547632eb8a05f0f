# shellcheck shell=bash
# Releases: archives of the full program and of the one that only records, packages of both kinds of
# distributions, a container image, a Helm chart, a bill of materials, and checksums. Nothing is packed
# that was not built here, but DuckDB's library.

# shellcheck source=scripts/deb.sh
. scripts/deb.sh
# shellcheck source=scripts/rpm.sh
. scripts/rpm.sh
# shellcheck source=scripts/image.sh
. scripts/image.sh
# shellcheck source=scripts/chart.sh
. scripts/chart.sh
# shellcheck source=scripts/roots.sh
. scripts/roots.sh

# Oldest C library that the full program runs on. DuckDB's library needs 2.25.
dist_glibc=2.28

# release_facts: sets what the names and times of all files derive from.
release_facts() {
	dist_machine=$(uname -m)
	version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version *= *"\(.*\)"/\1/p' Cargo.toml)
	name=fathom-$version-linux-$dist_machine
	release_time=$(git log -1 --format=%ct 2>/dev/null) || release_time=$(stat -c %Y Cargo.lock)
	export SOURCE_DATE_EPOCH=$release_time
}

make_dist() {
	local dist_machine version name release_time work again file
	release_facts
	setup_zig
	build_page
	build_full
	build_record
	mkdir -p dist
	work=$(mktemp -d dist/.pack.XXXXXX)
	gather "$work/trees" target/dist/fathom target/dist/fathom-record
	note "packing"
	pack_all "$work/trees" "$work/first"
	note "packing again, to compare"
	again=$work/again
	pack_all "$work/trees" "$again"
	for file in "$work"/first/*; do
		cmp "$file" "$again/${file##*/}" || die 1 "two packings of ${file##*/} differ"
	done
	(cd "$work/first" && sha256sum -- * >SHA256SUMS)
	mv -f -- "$work"/first/* dist/
	rm -rf -- "$work"
	(cd dist && sha256sum --quiet -c SHA256SUMS && cut -c 67- SHA256SUMS | xargs -d '\n' ls -l SHA256SUMS)
	note "each file was packed twice, with the same bytes"
	check_dist dist
}

# gather TREES FULL RECORD: the directories that are packed, with the two programs.
gather() {
	local trees=$1
	mkdir -p "$trees/$name" "$trees/$name-record"
	install -m 755 "$2" "$trees/$name/fathom"
	install -m 755 .deps/duckdb/libduckdb.so "$trees/$name/"
	[ ! -f "$(duckdb_licence)" ] || install -m 644 "$(duckdb_licence)" "$trees/$name/LICENSE-DUCKDB"
	install -m 755 "$3" "$trees/$name-record/fathom"
	manuals "$trees/$name"
	manuals "$trees/$name-record"
	licences "$trees/$name"
	licences "$trees/$name-record"
	bill full "duckdb=$(pinned duckdb_version "$dist_machine")=MIT=$(sha256_of .deps/duckdb/libduckdb.so)" >"$trees/$name/sbom.cdx.json"
	bill record >"$trees/$name-record/sbom.cdx.json"
	system_tree "$trees/$name" "$trees/system"
}

# pack_all TREES OUTPUT: every file of a release, from the same directories.
pack_all() {
	mkdir "$2"
	pack "$1" "$name" "$2"
	pack "$1" "$name-record" "$2"
	cp -- "$1/$name/sbom.cdx.json" "$2/$name.cdx.json"
	cp -- "$1/$name-record/sbom.cdx.json" "$2/$name-record.cdx.json"
	make_image "$1/$name-record" "$2/fathom-$version-$dist_machine-oci.tar"
	make_chart "$2"
	if have dpkg-deb; then make_deb "$1/system" "$2"; else note "no Debian package: dpkg-deb is not installed"; fi
	if have rpmbuild; then make_rpm "$1/system" "$2"; else note "no RPM: rpmbuild is not installed"; fi
}

# check_packing: the part of the above that takes seconds, with programs that are there already.
check_packing() (
	local dist_machine version name release_time work
	release_facts
	mkdir -p dist
	work=$(mktemp -d dist/.test.XXXXXX)
	trap 'rm -rf -- "$work"' EXIT
	mkdir -p "$work/record" "$work/out"
	strip --strip-debug -o "$work/record/fathom" target/record-only/fathom || exit
	licences "$work/record"
	bill full >"$work/out/full.cdx.json" || exit
	bill record >"$work/out/record.cdx.json" || exit
	cp -- "$work/out/record.cdx.json" "$work/record/sbom.cdx.json"
	make_image "$work/record" "$work/out/first.tar" || exit
	make_image "$work/record" "$work/out/again.tar" || exit
	cmp "$work/out/first.tar" "$work/out/again.tar" || exit
	make_chart "$work/out"
	check_image "$work/out/first.tar"
	check_manifests "$manifest"
	check_bills "$work/out"
)

# check_dist DIR: what can be checked on this machine; the rest is named.
check_dist() {
	local release
	check_bills "$1"
	check_image "$1/fathom-$version-$dist_machine-oci.tar"
	check_chart
	check_glibc "$1/$name.tar.gz"
	if ! is_root || ! have debootstrap; then
		note "the packages are not installed anywhere: that needs root and debootstrap"
		return
	fi
	for release in bullseye bookworm trixie; do
		check_packages "$1" "$release"
	done
	run_image "$1/fathom-$version-$dist_machine-oci.tar"
}

sha256_of() { sha256sum <"$1" | cut -d ' ' -f 1; }

# zig is a compiler that knows the symbols of older C libraries.
setup_zig() {
	local env=.deps/dist-python wanted=scripts/dist/requirements.txt
	if [ "$(cat "$env/ready" 2>/dev/null)" != "$(sha256_of "$wanted")" ]; then
		rm -rf -- "$env"
		if ! logged "making a Python environment" /usr/bin/python3 -m venv "$env" ||
			! logged "installing zig" "$env/bin/pip" install -q --require-hashes --only-binary=:all: -r "$wanted"; then
			die 1 "zig is not available" "releases are built with it, to run on older distributions"
		fi
		sha256_of "$wanted" >"$env/ready"
	fi
	PATH=$root/$env/bin:$PATH
}

# with_flags FLAG... -- COMMAND...: paths of this machine stay out of the programs. The whole workspace is built, so
# that dependencies have the features with which everything is tested.
with_flags() {
	local flags=("--remap-path-prefix=$root=/fathom"
		"--remap-path-prefix=${CARGO_HOME:-${HOME:-}/.cargo}=/cargo")
	while [ "$1" != -- ]; do
		flags+=("$1")
		shift
	done
	shift
	# Separated by a character that no path has.
	CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && printf '%s' "${flags[*]}") "$@"
}

# The full program finds DuckDB's library next to itself, or as installed. zig links it with the symbols of an
# old C library; everything is compiled as usual.
build_full() {
	local library linker=$root/target/dist/zig-cc lib=$root/target/dist/lib
	note "building the full program for the C library $dist_glibc"
	mkdir -p "$lib"
	for library in libelf.so libz.so; do
		ln -sfn "$(readlink -f -- "$(cc "-print-file-name=$library")")" "$lib/$library"
	done
	printf '#!/bin/sh\nexec cargo-zigbuild zig cc -- -g -target %s-linux-gnu.%s -Wl,--allow-shlib-undefined "$@"\n' \
		"$dist_machine" "$dist_glibc" >"$linker"
	chmod 755 "$linker"
	# Of a linker that it does not know, rustc guesses from its name how to pass options.
	LIBBPF_SYS_LIBRARY_PATH=$lib with_flags "-Clinker=$linker" -Clinker-flavor=gcc \
		"-Clink-arg=-Wl,-rpath,\$ORIGIN:\$ORIGIN/../lib" \
		-- cargo build --release --locked --target "$dist_machine-unknown-linux-gnu" \
		--target-dir target/dist --workspace --bin fathom
	strip --strip-debug -o target/dist/fathom "target/dist/$dist_machine-unknown-linux-gnu/release/fathom"
}

# The program that only records is static: it runs on every distribution and in an empty container.
build_record() {
	local library lib=$root/target/dist-record/lib
	note "building the static program that only records"
	mkdir -p "$lib"
	# A directory that has no shared libraries, so that these are found.
	for library in libelf.a libz.a; do
		cp -f -- "$(cc "-print-file-name=$library")" "$lib/" ||
			die 1 "$library is missing" "install libelf-dev and zlib1g-dev"
	done
	LIBBPF_SYS_LIBRARY_PATH=$lib with_flags -Ctarget-feature=+crt-static \
		-- cargo build --release --locked --target "$dist_machine-unknown-linux-gnu" \
		--target-dir target/dist-record --workspace --bin fathom --no-default-features
	strip --strip-debug -o target/dist/fathom-record "target/dist-record/$dist_machine-unknown-linux-gnu/release/fathom"
}

# bill KIND LIBRARY...: the bill of materials.
bill() {
	local kind=$1
	shift
	[ "$kind" = full ] || set -- "$@" "$(static_part glibc libc6 LGPL-2.1-or-later libc.a)" \
		"$(static_part elfutils libelf-dev 'LGPL-3.0-or-later OR GPL-2.0-or-later' libelf.a)" \
		"$(static_part zlib zlib1g-dev Zlib libz.a)"
	/usr/bin/python3 scripts/dist/sbom.py "$kind" "$release_time" "$dist_machine-unknown-linux-gnu" "$@"
}

# static_part NAME PACKAGE LICENCE FILE: a library of this distribution that is linked statically.
static_part() {
	local package_version
	package_version=$(dpkg-query -W -f '${Version}' "$2" 2>/dev/null) || package_version=unknown
	say "$1=$package_version=$3=$(sha256_of "$(cc "-print-file-name=$4")")"
}

check_bills() {
	if [ ! -x "$root/.deps/python/bin/python3" ]; then
		note "the bills of materials are not validated: ./do setup test installs the validator"
		return
	fi
	.deps/python/bin/python3 scripts/dist/sbom_check.py "$1"/*.cdx.json ||
		die 1 "a bill of materials is not CycloneDX"
	note "the bills of materials are valid"
}

# check_glibc ARCHIVE: no symbol of a newer C library is used.
check_glibc() {
	local newest
	newest=$(newest_glibc target/dist/fathom .deps/duckdb/libduckdb.so)
	at_least "$dist_glibc" "$newest" || die 1 "the full program needs the C library $newest"
	note "the full program needs the C library $newest, or newer"
}

newest_glibc() {
	objdump -T "$@" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | cut -d _ -f 2
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

# system_tree FROM TREE: files of an unpacked archive where packages of distributions have them.
system_tree() {
	local from=$1 tree=$2
	# The program looks for libduckdb.so in its own directory, which is private.
	install -d "$tree/usr/lib/fathom" "$tree/usr/bin" "$tree/usr/share/doc/fathom"
	install -m 755 "$from/fathom" "$tree/usr/lib/fathom/"
	install -m 644 "$from/libduckdb.so" "$tree/usr/lib/fathom/"
	ln -s ../lib/fathom/fathom "$tree/usr/bin/fathom"
	cp -r "$from/share/." "$tree/usr/share/"
	gzip -n -9 "$tree"/usr/share/man/man1/*.1
	install -m 644 "$from"/LICENSE-* "$from/README.md" "$from/CHANGELOG.md" "$from/sbom.cdx.json" "$tree/usr/share/doc/fathom/"
	cat >"$tree/usr/share/doc/fathom/copyright" <<-'END'
		fathom: Apache-2.0 or MIT (LICENSE-APACHE, LICENSE-MIT).
		BPF programs in it: GPL-2.0 (LICENSE-GPL-2.0).
		libduckdb.so: MIT (LICENSE-DUCKDB).
	END
	# Not started: it needs a configuration.
	if [ -f deploy/systemd/fathom-agent.service ]; then
		install -D -m 644 deploy/systemd/fathom-agent.service "$tree/usr/lib/systemd/system/fathom-agent.service"
	fi
	chmod -R u=rwX,go=rX "$tree"
}

# pack TREES NAME OUTPUT
pack() {
	tar -C "$1" --sort=name --mtime="@$release_time" --owner=0 --group=0 --numeric-owner -cf - "$2" |
		gzip -n >"$3/$2.tar.gz"
}
