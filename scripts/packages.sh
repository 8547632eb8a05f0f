# shellcheck shell=bash
# Packages of the distribution: what is missing, and installing it.

# Prints the packages of the table $1 whose probes fail, one line each with
# the alternatives.
missing_packages() {
	local kind name packages
	while read -r kind name packages; do
		case $kind in
		'') continue ;;
		command) have "$name" && continue ;;
		file) [ -e "$name" ] && continue ;;
		python) /usr/bin/python3 -c "import $name" 2>/dev/null && continue ;;
		header) header_exists "$name" && continue ;;
		esac
		printf '%s\n' "$packages"
	done <<<"$1"
}

# Where compilers look on Debian's multiarch layout and elsewhere.
header_exists() {
	local dir
	for dir in /usr/include /usr/local/include /usr/include/*-linux-gnu; do
		[ ! -e "$dir/$1" ] || return 0
	done
	return 1
}

# install_packages NEEDS WANTS: what is needed must install, what is wanted may.
install_packages() {
	local missing alternatives package
	local needed=()
	missing=$(missing_packages "$1")
	if [ -n "$missing" ]; then
		apt_refresh "$(printf '%s' "$missing" | tr '\n' ' ')"
		while read -r -a alternatives; do
			needed+=("$(first_available "${alternatives[@]}")")
		done <<<"$missing"
		apt_install "${needed[@]}"
		missing=$(missing_packages "$1" | tr '\n' ' ')
		[ -z "$missing" ] || die 1 "installed, but still not found: $missing" \
			"check that PATH has /usr/bin and /usr/sbin"
	fi
	missing=$(missing_packages "$2")
	if [ -z "$missing" ] || ! have apt-get; then return; fi
	apt_refresh "$(printf '%s' "$missing" | tr '\n' ' ')"
	while read -r -a alternatives; do
		for package in "${alternatives[@]}"; do
			[ -n "$(candidate "$package")" ] || continue
			if (apt_install "$package"); then continue 2; fi
		done
		note "not available here, done without: ${alternatives[0]}"
	done <<<"$missing"
}

# The first of the packages that apt would install; the first of all when it
# knows none, so that apt says so.
first_available() {
	local package
	for package in "$@"; do
		[ -z "$(candidate "$package")" ] || break
		package=
	done
	printf '%s\n' "${package:-$1}"
}

# Version of a package that apt would install; empty when there is none.
candidate() {
	LC_ALL=C apt-cache policy "$1" 2>/dev/null |
		sed -n 's/^  Candidate: \([0-9]*:\)\{0,1\}\([0-9][0-9.]*\).*/\2/p'
}

# Package lists are fetched once a run, and only when something is installed.
apt_updated=
apt_refresh() {
	[ -z "$apt_updated" ] || return 0
	have apt-get || die 1 "missing: $*" \
		"this is no Debian or Ubuntu: install them with your package manager, then run ./do again"
	need_root "installing packages ($*)"
	logged "fetching package lists" as_root apt-get -q update ||
		die 1 "apt-get update failed" "check the network and /etc/apt, then run ./do again"
	apt_updated=1
}

# apt_install PACKAGE...: never removes a package, never starts a service.
apt_install() {
	apt_refresh "$@"
	logged "installing $*" without_new_services as_root \
		env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
		apt-get -q -y --no-install-recommends --no-remove \
		-o DPkg::Lock::Timeout=300 install "$@" ||
		die 1 "could not install: $*" "apt-get's message is above"
}

# Debian starts a service when its package is installed, Redis among them, and
# only its program is wanted. policy-rc.d is the documented way to say no; an
# existing one is kept. A service that was there before is left as it is.
without_new_services() (
	policy=/usr/sbin/policy-rc.d
	redis_before=$(service_state)
	if [ ! -e $policy ]; then
		trap 'as_root rm -f $policy' EXIT
		printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
		as_root chmod 755 $policy
	fi
	"$@" || exit
	if [ -z "$redis_before" ] && [ -n "$(service_state)" ]; then
		as_root systemctl disable --now redis-server.service
	fi
)

# State of the distribution's Redis service; empty when there is none.
service_state() {
	[ -d /run/systemd/system ] || return 0
	systemctl is-enabled redis-server.service 2>/dev/null || true
}
