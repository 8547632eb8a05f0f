# shellcheck shell=bash
# Packages in clean distributions: installed, used, and removed again.

# debian RELEASE DIR: a minimal Debian. Its first state is kept, as making it takes a minute.
debian() {
	local kept=.deps/roots/$1.tar
	if [ ! -f "$kept" ]; then
		mkdir -p .deps/roots
		rm -rf -- "$2"
		logged "making a Debian ($1)" debootstrap --variant=minbase "$1" "$2" || return
		tar -C "$2" --exclude=./proc/* --exclude=./sys/* -cf "$kept.new" . && mv -- "$kept.new" "$kept"
		rm -rf -- "$2"
	fi
	mkdir -p "$2"
	tar -C "$2" -xf "$kept"
}

# What a user does first. The session is made by the installed program, and read by it.
# shellcheck disable=SC2016
use_program='
	cd /tmp && rm -rf run.fathom url
	[ "$(fathom --version)" = "fathom $VERSION" ]
	# It names what is missing.
	fathom doctor >/tmp/doctor || [ $? -eq 1 ]
	[ -s /tmp/doctor ]
	fathom record -o run.fathom -- dd if=/dev/zero of=/tmp/out bs=4k count=25 status=none >/tmp/record 2>&1 || { cat /tmp/record; exit 1; }
	[ "$(fathom query run.fathom "SELECT count(*) AS n FROM syscalls WHERE syscall = '\''write'\'' AND bytes = 4096" --format csv | tail -n 1)" = 25 ]
	fathom report run.fathom >/tmp/report
	grep -q "dd if=/dev/zero" /tmp/report
	fathom ui run.fathom --no-open --listen 127.0.0.1:0 >/tmp/url &
	page=$!
	for _ in $(seq 120); do [ -s /tmp/url ] || sleep 0.5; done
	url=$(head -n 1 /tmp/url) address=${url#http://} token=${url##*token=}
	address=${address%%/*}
	exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
	printf "GET /api/sessions HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n" "$address" "$token" >&3
	cat <&3 >/tmp/answer
	kill "$page"
	grep -q "^HTTP/1.1 200" /tmp/answer && grep -q run.fathom /tmp/answer
	echo used
'
# shellcheck disable=SC2016
with_apt='
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq install -y --no-install-recommends /tmp/fathom.deb >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
	# minbase leaves out the pages themselves.
	dpkg -L fathom | grep -q /man1/fathom-record.1.gz
'
# shellcheck disable=SC2016
upgraded='
	# As one does who has the package: a file that the new version lacks goes.
	[ -e /usr/share/zsh/site-functions/_fathom ]
	apt-get -qq install -y --no-install-recommends /tmp/newer.deb >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
	[ "$(dpkg-query -W -f "\${Version}" fathom)" = "$VERSION+next" ]
	[ ! -e /usr/share/zsh/site-functions/_fathom ]
'
# shellcheck disable=SC2016
without_apt='
	apt-get -qq purge -y fathom >/dev/null 2>&1
	[ -z "$(find /usr /etc /var/lib/fathom -xdev -name "*fathom*" 2>/dev/null)" ]
	echo removed
'

# newer_deb FROM TO: the same package as a later version, which lacks a file.
newer_deb() {
	local work
	work=$(mktemp -d "${2%/*}/.newer.XXXXXX")
	dpkg-deb -R "$1" "$work/tree"
	sed -i 's/^Version: .*/&+next/' "$work/tree/DEBIAN/control"
	rm "$work/tree/usr/share/zsh/site-functions/_fathom"
	dpkg-deb --root-owner-group -Zgzip -z1 -b "$work/tree" "$2" >/dev/null
	rm -rf -- "$work"
}

# check_packages DIR RELEASE: both packages and both archives, in a clean Debian.
check_packages() {
	local tree=$1/.root log=$1/.root.log deb rpm
	deb=$1/fathom_${version}_$(dpkg --print-architecture).deb
	rpm=$1/fathom-$version-1.$dist_machine.rpm
	rm -rf -- "$tree"
	if ! debian "$2" "$tree"; then
		note "not tested on Debian $2: it cannot be fetched"
		return
	fi
	cp -- "$deb" "$tree/tmp/fathom.deb"
	newer_deb "$deb" "$tree/tmp/newer.deb"
	must_log "$log" removed "the package does not work in a clean Debian ($2)" \
		in_root "$tree" "$with_apt$use_program$upgraded$use_program$without_apt"
	note "the Debian package was installed, used, upgraded, and removed on Debian $2"
	if [ -f "$rpm" ]; then
		must_log "$log" removed "the RPM does not work in a clean root" check_rpm "$rpm" "$tree"
		note "the RPM was installed, used, and removed with the libraries of Debian $2"
	fi
	tar -C "$tree/opt" -xzf "$1/$name.tar.gz"
	must_log "$log" used "the archive does not work in a clean Debian ($2)" \
		in_root "$tree" "PATH=/opt/$name:\$PATH; $use_program"
	note "the archive was used on Debian $2"
	rm -rf -- "$tree" "$log"
}

# must_log LOG LINE WHAT COMMAND...: the command succeeds, and prints the line.
must_log() {
	local log=$1 line=$2 what=$3
	shift 3
	if ! "$@" >"$log" 2>&1 || ! grep -qx "$line" "$log"; then
		cat "$log" >&2
		die 1 "$what"
	fi
}

# check_rpm FILE TREE: rpm's own checks, then as a program of a distribution whose database does not
# know the libraries of the tree.
check_rpm() {
	rpm -K "$1" || return
	rpm -qp --requires "$1"
	! rpm -qp --provides "$1" | grep duckdb || return
	rpm --root "$(readlink -f -- "$2")" --dbpath /var/lib/rpm -i --nodeps "$1" || return
	in_root "$2" "$use_program" || return
	# An upgrade, to the same version.
	rpm --root "$(readlink -f -- "$2")" --dbpath /var/lib/rpm -U --nodeps --force "$1" || return
	in_root "$2" "$use_program" || return
	rpm --root "$(readlink -f -- "$2")" --dbpath /var/lib/rpm -e --nodeps fathom || return
	[ ! -e "$2/usr/bin/fathom" ] && [ ! -e "$2/usr/lib/fathom" ] && echo removed
}

# in_root TREE SCRIPT: runs it in the tree, with the kernel's file systems; the mounts end with it.
in_root() {
	# shellcheck disable=SC2016
	unshare -m bash -ec '
		mount --make-rprivate /
		mount -t proc proc "$1/proc"
		mount --rbind /sys "$1/sys"
		mount --rbind /dev "$1/dev"
		exec chroot "$1" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root "VERSION=$3" bash -ec "$2"
	' root "$1" "$2" "$version"
}
