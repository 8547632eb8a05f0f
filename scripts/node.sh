# shellcheck shell=bash
# Node.js, which builds the page: the system's where it is new enough, else one
# that is fetched once, checked, and kept in the cache. The choice is linked
# into the clone as .deps/node.

node=$root/.deps/node

use_chosen_node() { [ -x "$node" ]; }

setup_node() {
	local found arch dir
	while IFS= read -r found; do
		at_least "$("$found" --version 2>/dev/null | sed -n 's/^v//p' | grep . || say 0)" "$min_node" || continue
		link_node "$found"
		return
	done < <(type -aP node nodejs)
	arch=$(uname -m)
	[ -n "$(pinned node_package "$arch")" ] || die 1 "no Node.js $min_node or newer, and none is pinned for $arch" \
		"install it from https://nodejs.org, then run ./do again"
	dir=$(cache_dir)/node-$node_version-$arch
	if [ ! -f "$dir/node" ] || ! check_sha256 "$dir/node" "$(pinned node_program_sha256 "$arch")"; then
		fetch_node "$arch" "$dir"
	fi
	link_node "$dir/node"
}

# Replaced in one step: a build may be running in another terminal.
link_node() {
	mkdir -p .deps
	ln -s -- "$1" "$node.$$"
	mv -fT -- "$node.$$" "$node"
}

# fetch_node MACHINE DIR. The directory appears whole or not at all.
fetch_node() {
	local arch=$1 dir=$2 work package
	have npm || (apt_install npm) || die 1 "npm is missing, which fetches Node.js $node_version" \
		"install it, or install Node.js $min_node or newer"
	mkdir -p "$(dirname -- "$dir")"
	work=$(mktemp -d "$dir.XXXXXX")
	package=$(pinned node_package "$arch")@$node_version
	# Scripts of packages never run: only the program is wanted.
	(cd "$work" && logged "fetching Node.js $node_version" npm pack --ignore-scripts "$package") || {
		rm -rf -- "$work"
		die 1 "could not fetch $package" "check the network, or install Node.js $min_node or newer"
	}
	mv -- "$work"/*.tgz "$work/package.tgz"
	if ! check_sha256 "$work/package.tgz" "$(pinned node_package_sha256 "$arch")"; then
		rm -rf -- "$work"
		die 1 "$package is not the file that is pinned in scripts/versions.sh (its SHA-256 differs)" \
			"do not use it; run ./do again, and report it when it happens twice"
	fi
	tar -xzf "$work/package.tgz" -C "$work" --no-same-owner --strip-components=2 package/bin/node
	tar -xzf "$work/package.tgz" -C "$work" --no-same-owner --strip-components=1 package/LICENSE
	if ! check_sha256 "$work/node" "$(pinned node_program_sha256 "$arch")"; then
		rm -rf -- "$work"
		die 1 "the program in $package is not the one that is pinned in scripts/versions.sh"
	fi
	rm -f -- "$work/package.tgz"
	chmod 755 "$work" "$work/node"
	rm -rf -- "$dir"
	mv -T -- "$work" "$dir"
}
