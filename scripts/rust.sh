# shellcheck shell=bash
# Finds or installs a Rust toolchain that is new enough.

min_rust=$(sed -n 's/^rust-version *= *"\([0-9.]*\)".*/\1/p' "$root/Cargo.toml" | head -n 1)

# rust_in DIR WHAT: the programs are there.
rust_in() {
	local program
	for program in cargo rustc; do [ -x "$1/$program" ] || return 1; done
	[ "$2" = test ] || return 0
	for program in cargo-clippy rustfmt; do [ -x "$1/$program" ] || return 1; done
}

# The directory that earlier set-ups found the toolchain in goes first in PATH.
use_chosen_rust() {
	local dir
	[ -f .deps/rust ] || return 1
	dir=$(<.deps/rust)
	rust_in "$dir" "$1" || return 1
	case :$PATH: in
	*":$dir:"*) [ "$(command -v cargo)" = "$dir/cargo" ] || PATH=$dir:$PATH ;;
	*) PATH=$dir:$PATH ;;
	esac
}

# Directories that may hold a toolchain: PATH, rustup's, the one that was fetched here, and those
# of Ubuntu's versioned packages, newest first.
rust_directories() {
	local cargo
	while IFS= read -r cargo; do dirname -- "$cargo"; done < <(type -aP cargo)
	[ -z "${CARGO_HOME:-}" ] || say "$CARGO_HOME/bin"
	[ -z "${HOME:-}" ] || say "$HOME/.cargo/bin"
	say "$(rust_dir)/bin"
	find /usr/lib -maxdepth 2 -path '/usr/lib/rust-*/bin' 2>/dev/null | sort -rV
}

# find_rust WHAT: chooses the first toolchain that is new enough; for tests it
# must have clippy and rustfmt. rustup's proxies exist without the tool behind
# them, which is why each is run.
find_rust() {
	local dir version
	while IFS= read -r dir; do
		[ -x "$dir/cargo" ] || continue
		version=$("$dir/rustc" --version 2>/dev/null | first_version) || continue
		at_least "${version:-0}" "$min_rust" || continue
		"$dir/cargo" --version >/dev/null 2>&1 || continue
		if [ "$1" = test ]; then
			"$dir/cargo-clippy" --version >/dev/null 2>&1 || continue
			"$dir/rustfmt" --version >/dev/null 2>&1 || continue
		fi
		printf '%s\n' "$dir" >.deps/rust
		return
	done < <(rust_directories)
	return 1
}

setup_rust() {
	if ! find_rust "$1"; then
		rust_from_apt "$1" || rust_from_archive || true
		find_rust "$1" || die 1 "no Rust $min_rust or newer$([ "$1" != test ] || say ' with clippy and rustfmt')" \
			"install it from https://rustup.rs, then run ./do again"
	fi
	use_chosen_rust "$1"
}

# Version of a package that apt would install; empty when there is none.
candidate() {
	LC_ALL=C apt-cache policy "$1" 2>/dev/null |
		sed -n 's/^  Candidate: \([0-9]*:\)\{0,1\}\([0-9][0-9.]*\).*/\2/p'
}

# Debian's stable releases carry a newer Rust for browsers as rustc-web,
# Ubuntu's as rustc-1.NN; the plain package is often too old.
rust_from_apt() {
	local suffix version packages
	have apt-get || return 1
	apt_refresh "Rust $min_rust"
	while IFS= read -r suffix; do
		version=$(candidate "rustc$suffix")
		at_least "${version:-0}" "$min_rust" || continue
		packages=("rustc$suffix" "cargo$suffix")
		[ "$1" != test ] || packages+=("rust$suffix-clippy" "rustfmt$suffix")
		(apt_install "${packages[@]}") || continue
		! find_rust "$1" || return 0
	done < <(
		printf '\n-web\n'
		apt-cache pkgnames rustc- | sed -n 's/^rustc\(-[0-9.]*\)$/\1/p' | sort -rV
	)
	return 1
}

rust_dir() { say "$(cache_dir)/rust-$rust_version-$(uname -m)"; }

# The release as its makers publish it, checked against the hash that is pinned. rustup is not
# used: it takes whatever its server has.
rust_from_archive() {
	local arch dir parts=() part name
	arch=$(uname -m) dir=$(rust_dir)
	[ -n "$(pinned rust_sha256 "$arch")" ] || return 1
	note "no package of this distribution has Rust $min_rust or newer: fetching Rust $rust_version"
	name=rust-$rust_version-$arch-unknown-linux-gnu
	for part in rustc cargo "rust-std-$arch-unknown-linux-gnu" clippy-preview rustfmt-preview; do
		parts+=("$name/$part")
	done
	fetch_rust "$name" "$(pinned rust_sha256 "$arch")" "$dir" "${parts[@]}"
}

# rust_std_from_archive TARGET: the library for another architecture, for the Rust that was fetched
# here. Fails for a toolchain that came from elsewhere: that has a way of its own.
rust_std_from_archive() {
	local name=rust-std-$rust_version-$1 hash work
	hash=$(pinned rust_std_sha256 "${1%%-*}")
	[ -n "$hash" ] && [ "$(rustc --print sysroot)" = "$(rust_dir)" ] || return 1
	work=$(rust_dir).std
	fetch_rust "$name" "$hash" "$work" "$name/rust-std-$1" || return
	mv -T -- "$work/lib/rustlib/$1" "$(rust_dir)/lib/rustlib/$1"
	rm -rf -- "$work"
}

# fetch_rust NAME HASH DIR PART...: leaves the parts of an archive in DIR, which appears whole
# or not at all.
fetch_rust() {
	local name=$1 hash=$2 dir=$3 work
	shift 3
	have curl || (apt_install curl ca-certificates) || return 1
	have xz || (apt_install xz-utils) || return 1
	mkdir -p "$(dirname -- "$dir")"
	work=$(mktemp -d "$dir.XXXXXX")
	if ! logged "fetching $name" curl --proto '=https' --tlsv1.2 -fsS -o "$work/archive" \
		"https://static.rust-lang.org/dist/$name.tar.xz"; then
		rm -rf -- "$work"
		return 1
	fi
	if ! check_sha256 "$work/archive" "$hash"; then
		rm -rf -- "$work"
		die 1 "$name.tar.xz is not the file that is pinned in scripts/versions.sh (its SHA-256 differs)" \
			"do not use it; run ./do again, and report it when it happens twice"
	fi
	mkdir "$work/root"
	# The name of the archive and that of the part give way.
	logged "unpacking $name" tar -xJf "$work/archive" -C "$work/root" --no-same-owner \
		--strip-components=2 "$@" || { rm -rf -- "$work" && return 1; }
	rm -rf -- "$dir"
	mv -T -- "$work/root" "$dir"
	rm -rf -- "$work"
}
