# shellcheck shell=bash
# The documentation site: docs/, built by mdBook into target/site/html.

mdbook_dir() { say "$(cache_dir)/mdbook-$mdbook_version"; }

# setup_mdbook: the pinned version, with the dependencies that its own lock file names. Without
# its web server and file watcher, which need half of them.
setup_mdbook() {
	local dir
	dir=$(mdbook_dir)
	[ ! -x "$dir/bin/mdbook" ] || return 0
	mkdir -p "$(dirname -- "$dir")"
	rm -rf -- "$dir.new"
	logged "building mdBook $mdbook_version" cargo install --locked --quiet --root "$dir.new" \
		--no-default-features --features search --version "$mdbook_version" mdbook || return
	mv -T -- "$dir.new" "$dir"
}

# build_site: fails on pages that mdBook refuses and on links that lead nowhere.
build_site() {
	setup_mdbook || return
	rm -rf target/site
	mkdir -p target/site
	/usr/bin/python3 scripts/site.py stage target/site &&
		logged "building the documentation" "$(mdbook_dir)/bin/mdbook" build target/site &&
		/usr/bin/python3 scripts/site.py check target/site/html
}
