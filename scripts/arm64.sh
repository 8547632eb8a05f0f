# shellcheck shell=bash
# fathom and its end-to-end tests for arm64, made on another machine: a root directory of
# Debian's arm64 packages, in which the compiler finds headers and libraries and which the
# emulated machine (scripts/kernels.sh) has as its own; and what is compiled against it.

arm64=$root/.deps/arm64
arm64_root=$arm64/root
arm64_target=aarch64-unknown-linux-gnu
# The suite of the packages: what is compiled against, then what guest-tests and the tests run.
arm64_suite=bookworm
arm64_packages='libc6-dev libgcc-12-dev libelf-dev zlib1g-dev libstdc++6
	libc-bin bash busybox-static coreutils mount util-linux util-linux-extra bsdutils procps e2fsprogs
	xfsprogs btrfs-progs fio strace sqlite3 xxhash stress-ng python3-minimal'

# setup_arm64: installs what is missing and can be had.
setup_arm64() {
	install_packages '' "$wants_arm64"
	arm64_rust || rust_std_from_archive "$arm64_target" || true
}

arm64_rust() { [ -d "$(rustc --print sysroot)/lib/rustlib/$arm64_target" ]; }

# Prints why arm64 cannot be emulated here; nothing when it can.
no_arm64() {
	local tool
	for tool in qemu-system-aarch64 aarch64-linux-gnu-ld apt-get dpkg-deb depmod modprobe cpio xz; do
		have "$tool" || { say "$tool is not installed" && return; }
	done
	arm64_rust || { say "Rust has no library for $arm64_target (rustup target add $arm64_target)" && return; }
	fetch_arm64_root
}

# fetch_arm64_root: the packages, with all that they depend on, and DuckDB's library in
# $arm64_root. Says why when it cannot. No package's script runs, and nothing of the
# system's changes.
fetch_arm64_root() {
	local work=$arm64/fetching key uri deb
	key=$(printf '%s\n' "$arm64_suite" "$arm64_packages" "$duckdb_library_sha256_aarch64")
	[ "$(cat -- "$arm64_root/fetched" 2>/dev/null)" != "$key" ] || return 0
	uri=$(debian_archive main)
	[ -n "$uri" ] || { say "apt has no archive of Debian (main)" && return; }
	rm -rf -- "$work" "$arm64_root"
	mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root"
	printf 'deb [signed-by=%s] %s %s main\n' \
		/usr/share/keyrings/debian-archive-keyring.gpg "$uri" "$arm64_suite" >"$work/sources.list"
	# Nothing counts as installed.
	: >"$work/status"
	arm64_apt "$work" update >"$work/log" 2>&1 ||
		{ say "apt-get update failed for $arm64_suite: $(tail -n 1 "$work/log")" && return; }
	# shellcheck disable=SC2086 # one word a package
	arm64_apt "$work" install -y --download-only --no-install-recommends $arm64_packages >"$work/log" 2>&1 ||
		{ say "downloading Debian's packages failed: $(tail -n 1 "$work/log")" && return; }
	for deb in "$work/cache/archives/"*.deb; do
		dpkg-deb -x "$deb" "$work/root" || { say "unpacking $deb failed" && return; }
	done
	mkdir -p "$work/root/"{etc,tmp,proc,sys,dev,run,root}
	printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$work/root/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' >"$work/root/etc/group"
	# Where the loader looks last.
	(get_duckdb aarch64) || { say "DuckDB's library for arm64 could not be fetched" && return; }
	install -m 755 "$(duckdb_dir aarch64)/libduckdb.so" "$work/root/usr/lib/aarch64-linux-gnu/"
	printf '%s\n' "$key" >"$work/root/fetched"
	mv -T -- "$work/root" "$arm64_root"
	rm -rf -- "$work"
}

# arm64_apt DIR ARGUMENTS...
arm64_apt() {
	local dir=$1
	shift
	kernel_apt "$dir" apt-get -o "Dir::State::status=$dir/status" -o Debug::NoLocking=1 "$@"
}

# build_arm64: fathom, the tests and their workloads; prints the test program's path. By clang,
# as it compiles for every architecture and a second gcc cannot stand beside gcc-multilib.
build_arm64() {
	local cc=$arm64/cc source program
	printf '#!/bin/sh\nexec %q --target=aarch64-linux-gnu --sysroot=%q "$@"\n' \
		"${CLANG:-clang}" "$arm64_root" >"$cc"
	chmod 755 "$cc"
	build_page
	note "building fathom and its tests for arm64"
	program=$(CC_aarch64_unknown_linux_gnu=$cc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$cc \
		DUCKDB_LIB_DIR=$arm64_root/usr/lib/aarch64-linux-gnu \
		cargo build --release --locked --workspace --target "$arm64_target" --bin fathom --test end_to_end \
		--message-format=json-render-diagnostics |
		sed -n 's/.*"name":"end_to_end".*"executable":"\([^"]*\)".*/\1/p')
	[ -x "$program" ] || return
	# Nothing can be compiled over there, and what is compiled there cannot run here.
	mkdir -p "$arm64/workloads"
	for source in tests/workloads/*.c; do
		# Probes name the whole register of a number of 32 bits, as <sys/sdt.h> does.
		"$cc" -O1 -Wall -Wextra -Wno-override-init -Wno-asm-operand-widths -Werror -pthread \
			-o "$arm64/workloads/$(basename -- "$source" .c)" "$source" || return
	done
	printf '%s\n' "${program#"$root/"}"
}
