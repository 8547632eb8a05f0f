# shellcheck shell=bash
# The RPM, made without a distribution that uses them.

# make_rpm SYSTEM OUTPUT: a package of the files in SYSTEM. rpm finds the libraries, and the versions of their
# symbols, that the files need.
make_rpm() {
	local work system
	system=$(readlink -f -- "$1")
	work=$(mktemp -d "$PWD/dist/.rpm.XXXXXX")
	cat >"$work/fathom.spec" <<-END
		Name: fathom
		Version: $version
		Release: 1
		Summary: Records the storage I/O of programs and explains what is slow
		License: (Apache-2.0 OR MIT) AND GPL-2.0-only AND MIT
		AutoProv: no
		%description
		fathom records every system call and io_uring operation of a program with
		eBPF, and the layers below it down to the device. It stores Parquet files,
		answers SQL, finds problems, and shows everything in the browser.
		%install
		mkdir -p %{buildroot}
		cp -a $system/. %{buildroot}/
		%files
		%dir /usr/lib/fathom
		%dir /usr/share/doc/fathom
		$(cd "$system" && find . ! -type d ! -path './usr/share/man/*' ! -path './usr/share/doc/*' -printf '/%P\n' | sort)
		$(cd "$system" && find usr/share/doc -type f -printf '%%doc /%p\n' | sort)
		$(cd "$system" && find usr/share/man -type f -printf '%%doc /%p\n' | sort)
	END
	sed -i 's/^\t*//' "$work/fathom.spec"
	rpmbuild -bb --quiet --target "$dist_machine" \
		--define "_topdir $work" --define "_rpmdir $work/out" --define '_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
		--define '_buildhost reproducible' --define 'use_source_date_epoch_as_buildtime 1' \
		--define 'clamp_mtime_to_source_date_epoch 1' --define 'build_mtime_policy clamp_to_source_date_epoch' \
		--define '_binary_payload w3.xzdio' --define '_build_id_links none' --define 'debug_package %{nil}' \
		--define '__os_install_post %{nil}' --define '_dbpath /var/lib/rpm' \
		"$work/fathom.spec" >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		die 1 "rpmbuild failed"
	}
	mv -- "$work/out/fathom-$version-1.$dist_machine.rpm" "$2/"
	rm -rf -- "$work"
}
