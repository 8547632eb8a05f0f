# shellcheck shell=bash
# The Debian package, from an unpacked release archive, and its test in a clean Debian.

# make_deb DIR VERSION TIME OUTPUT: a package of the program, libraries, and texts in DIR.
make_deb() {
	local from=$1 version=$2 time=$3 output=$4 work tree architecture glibc
	work=$(mktemp -d dist/.deb.XXXXXX)
	tree=$work/tree
	architecture=$(dpkg --print-architecture)
	# The program looks for libduckdb.so in its own directory, which is private.
	install -d "$tree/usr/lib/fathom" "$tree/usr/bin" "$tree/usr/share/doc/fathom" "$tree/DEBIAN"
	install -m 755 "$from/fathom" "$tree/usr/lib/fathom/"
	install -m 644 "$from/libduckdb.so" "$tree/usr/lib/fathom/"
	ln -s ../lib/fathom/fathom "$tree/usr/bin/fathom"
	cp -r "$from/share/." "$tree/usr/share/"
	gzip -n -9 "$tree"/usr/share/man/man1/*.1
	install -m 644 "$from"/LICENSE-* "$from/README.md" "$from/CHANGELOG.md" "$tree/usr/share/doc/fathom/"
	cat >"$tree/usr/share/doc/fathom/copyright" <<-'END'
		fathom: Apache-2.0 or MIT (LICENSE-APACHE, LICENSE-MIT).
		BPF programs in it: GPL-2.0 (LICENSE-GPL-2.0).
		libduckdb.so: MIT (LICENSE-DUCKDB).
	END
	# The newest version of the C library of which a symbol is used.
	glibc=$(objdump -T "$from/fathom" "$from/libduckdb.so" |
		grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
	cat >"$tree/DEBIAN/control" <<-END
		Package: fathom
		Version: $version
		Architecture: $architecture
		Maintainer: The fathom maintainers <maintainers@fathom.invalid>
		Section: utils
		Priority: optional
		Installed-Size: $(du -sk --apparent-size "$tree/usr" | cut -f 1)
		Depends: libc6 (>= ${glibc#GLIBC_}), libelf1 | libelf1t64, zlib1g, libgcc-s1, libstdc++6
		Description: records the storage I/O of programs and explains what is slow
		 fathom records every system call and io_uring operation of a program with
		 eBPF, and the layers below it down to the device. It stores Parquet files,
		 answers SQL, finds problems, and shows everything in the browser.
	END
	chmod -R u=rwX,go=rX "$tree"
	SOURCE_DATE_EPOCH=$time dpkg-deb --root-owner-group -Zxz -z3 -b "$tree" "$output" >/dev/null
	rm -rf -- "$work"
	note "$output"
}

# check_deb FILE: installs it with apt in a new Debian, and runs the program there.
check_deb() {
	local root=$1.root status=0
	if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
		note "the package is not tested: that needs root and debootstrap"
		return
	fi
	rm -rf -- "$root"
	logged "making a Debian" debootstrap --variant=minbase stable "$root" &&
		install -m 644 "$1" "$root/tmp/fathom.deb" &&
		mount -t proc proc "$root/proc" &&
		mount --bind -o ro /sys "$root/sys" || status=1
	# shellcheck disable=SC2016
	[ "$status" -ne 0 ] || chroot "$root" sh -ec '
		export DEBIAN_FRONTEND=noninteractive LC_ALL=C
		apt-get -qq install -y --no-install-recommends /tmp/fathom.deb >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
		fathom --version
		# It names what is missing, and a user without rights is one of those.
		fathom doctor >/tmp/doctor || [ $? -eq 1 ]
		[ -s /tmp/doctor ]
		fathom sessions /tmp | grep -q "no sessions"
		# minbase leaves out the pages themselves.
		dpkg -L fathom | grep -q /man1/fathom-record.1.gz
		apt-get -qq purge -y fathom >/dev/null 2>&1
		[ ! -e /usr/bin/fathom ]' || status=1
	umount "$root/sys" "$root/proc" 2>/dev/null || true
	rm -rf -- "$root"
	[ "$status" -eq 0 ] || die 1 "the package does not work in a clean Debian"
	note "the package works in a clean Debian"
}
