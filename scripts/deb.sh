# shellcheck shell=bash
# The Debian package.

# make_deb SYSTEM OUTPUT: a package of the files in SYSTEM.
make_deb() {
	local work tree architecture glibc
	work=$(mktemp -d dist/.deb.XXXXXX)
	tree=$work/tree
	architecture=$(dpkg --print-architecture)
	cp -a -- "$1" "$tree"
	mkdir "$tree/DEBIAN"
	glibc=$(newest_glibc "$tree/usr/lib/fathom/fathom" "$tree/usr/lib/fathom/libduckdb.so")
	cat >"$tree/DEBIAN/control" <<-END
		Package: fathom
		Version: $version
		Architecture: $architecture
		Maintainer: The fathom maintainers <maintainers@fathom.invalid>
		Section: utils
		Priority: optional
		Installed-Size: $(du -sk --apparent-size "$tree/usr" | cut -f 1)
		Depends: libc6 (>= $glibc), libelf1 | libelf1t64, zlib1g, libgcc-s1, libstdc++6
		Description: records the storage I/O of programs and explains what is slow
		 fathom records every system call and io_uring operation of a program with
		 eBPF, and the layers below it down to the device. It stores Parquet files,
		 answers SQL, finds problems, and shows everything in the browser.
	END
	chmod -R u=rwX,go=rX "$tree/DEBIAN"
	dpkg-deb --root-owner-group -Zxz -z3 -b "$tree" "$2/fathom_${version}_$architecture.deb" >/dev/null
	rm -rf -- "$work"
}
