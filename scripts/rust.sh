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

# Directories that may hold a toolchain: PATH, rustup's, and those of Ubuntu's
# versioned packages, newest first.
rust_directories() {
	local cargo
	while IFS= read -r cargo; do dirname -- "$cargo"; done < <(type -aP cargo)
	[ -z "${CARGO_HOME:-}" ] || say "$CARGO_HOME/bin"
	[ -z "${HOME:-}" ] || say "$HOME/.cargo/bin"
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
		rust_components "$1" || rust_from_apt "$1" || rust_from_rustup "$1" || true
		find_rust "$1" || die 1 "no Rust $min_rust or newer$([ "$1" != test ] || say ' with clippy and rustfmt')" \
			"install it from https://rustup.rs, then run ./do again"
	fi
	use_chosen_rust "$1"
}

# A rustup toolchain that only lacks clippy and rustfmt gets them.
rust_components() {
	[ "$1" = test ] || return 1
	{ find_rust run && use_chosen_rust run && have rustup; } || return 1
	logged "installing clippy and rustfmt" rustup component add clippy rustfmt && find_rust test
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

rust_from_rustup() {
	local script status=0
	note "no package of this distribution has Rust $min_rust or newer: trying rustup"
	if ! have rustup; then
		have curl || (apt_install curl ca-certificates) || return 1
		script=$(mktemp)
		logged "fetching rustup's installer" \
			curl --proto '=https' --tlsv1.2 -fsS -o "$script" https://sh.rustup.rs &&
			logged "installing Rust for this user" \
				sh "$script" -y --no-modify-path --profile minimal -c clippy -c rustfmt || status=$?
		rm -f "$script"
		return $status
	fi
	logged "installing Rust for this user" \
		rustup toolchain install stable --profile minimal -c clippy -c rustfmt
}
