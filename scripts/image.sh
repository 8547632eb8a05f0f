# shellcheck shell=bash
# The container image: the static program in an otherwise empty root, as an OCI layout.

# make_image FROM OUTPUT: FROM is the unpacked archive of the program that only records.
make_image() {
	local work
	work=$(mktemp -d dist/.image.XXXXXX)
	install -D -m 755 "$1/fathom" "$work/usr/bin/fathom"
	install -d "$work/usr/share/doc/fathom" "$work/etc/fathom" "$work/proc" "$work/sys" "$work/var/lib/fathom"
	install -d -m 1777 "$work/tmp"
	install -m 644 "$1"/LICENSE-* "$1/sbom.cdx.json" "$work/usr/share/doc/fathom/"
	/usr/bin/python3 scripts/dist/oci.py "$work" "$version" "$dist_machine" "$release_time" "$2" || return
	rm -rf -- "$work"
}

# check_image FILE: by skopeo, which reads all of it, and by umoci, which unpacks it.
check_image() {
	local work
	if ! have skopeo || ! have umoci; then
		note "the container image is not checked: that needs skopeo and umoci"
		return
	fi
	work=$(mktemp -d dist/.check.XXXXXX)
	unpack_image "$1" "$work" --rootless
	[ "$("$work/bundle/rootfs/usr/bin/fathom" --version)" = "fathom $version" ] ||
		die 1 "the program in the container image does not run"
	rm -rf -- "$work"
	note "skopeo and umoci read the container image"
}

# unpack_image FILE DIR [OPTION]: to DIR/bundle.
unpack_image() {
	local file=$1 dir=$2
	shift 2
	if ! skopeo copy -q --insecure-policy "oci-archive:$file" "oci:$dir/layout:$version" ||
		! skopeo inspect "oci:$dir/layout:$version" >/dev/null ||
		! umoci unpack "$@" --image "$dir/layout:$version" "$dir/bundle" >/dev/null 2>"$dir/umoci.log"; then
		cat "$dir/umoci.log" >&2 2>/dev/null || true
		die 1 "the container image is not valid"
	fi
}

# run_image FILE: records this machine from a container that sees the processes of the host, with the
# capabilities and mounts of the Helm chart.
run_image() {
	local work
	if ! is_root || ! have skopeo || ! have umoci || ! have runc; then
		note "the container is not run: that needs root, skopeo, umoci, and runc"
		return
	fi
	work=$(mktemp -d "$PWD/dist/.run.XXXXXX")
	unpack_image "$1" "$work"
	mkdir "$work/state"
	/usr/bin/python3 scripts/dist/bundle.py "$work/bundle/config.json" "$work/state" deploy/helm/fathom/values.yaml \
		/usr/bin/fathom record --all --layers all -o /var/lib/fathom/node.fathom --duration 3s
	# Something to record outside of the container.
	(for _ in 1 2 3 4 5 6 7 8; do
		dd if=/dev/zero of="$work/written-outside" bs=64k count=16 conv=fsync status=none
		sleep 0.5
	done) &
	runc run -b "$work/bundle" "fathom-dist-$$" >"$work/log" 2>&1 </dev/null || {
		cat "$work/log" >&2
		die 1 "the container does not record"
	}
	wait $!
	# DuckDB's library is next to it in the archive only.
	LD_LIBRARY_PATH=$root/.deps/duckdb target/dist/fathom query "$work/state/node.fathom" \
		"SELECT count(*) > 0 AS found FROM syscalls WHERE syscall = 'write' AND path = '$work/written-outside'" --format csv |
		grep -q true || die 1 "the container does not see the writes of a process of the host"
	rm -rf -- "$work"
	note "a container records the host"
}
