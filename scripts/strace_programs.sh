# shellcheck shell=bash
# strace's own test programs, which write what strace must print of their calls: built from Debian's
# source package, which apt fetches and verifies. They are kept in .deps/strace.

# The suite of Debian's that has the version whose texts fathom follows.
strace_suite=bookworm
strace_list=tests/strace/programs

# strace_apt DIR COMMAND...: apt-get with sources, lists and cache of its own below DIR.
strace_apt() {
	local dir=$1
	shift
	apt-get -q -o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o "Dir::State::lists=$dir/lists" -o "Dir::Cache=$dir/cache" \
		-o Acquire::Languages=none -o APT::Sandbox::User=root "$@"
}

# build_strace_programs: leaves .deps/strace/programs and .deps/strace/ready; without them
# .deps/strace/missing tells why, and the test is skipped.
build_strace_programs() {
	local dir=$root/.deps/strace key reason
	key=$(cat -- "$strace_list" scripts/strace_programs.sh | sha256sum)
	[ "$(cat -- "$dir/ready" 2>/dev/null)" != "$key" ] || return 0
	note "building strace's test programs"
	rm -rf -- "$dir"
	mkdir -p "$dir/programs"
	if reason=$(fetch_strace "$dir/work" && make_strace_programs "$dir"); then
		printf '%s\n' "$key" >"$dir/ready"
		rm -rf -- "$dir/work"
	else
		printf '%s\n' "$reason" >"$dir/missing"
	fi
}

# fetch_strace WORK: leaves WORK/source. Says why when it cannot.
fetch_strace() {
	local work=$1 uri
	[ "$(uname -m)" = x86_64 ] || { say "they are compared on x86-64 only" && return 1; }
	have apt-get || { say "there is no apt-get to fetch their source with" && return 1; }
	uri=$(debian_archive main)
	[ -n "$uri" ] || { say "apt has no archive of Debian" && return 1; }
	mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/source"
	printf 'deb-src [signed-by=%s] %s %s main\n' \
		/usr/share/keyrings/debian-archive-keyring.gpg "$uri" "$strace_suite" >"$work/sources.list"
	strace_apt "$work" update >"$work/log" 2>&1 ||
		{ say "apt-get update failed for $strace_suite: $(tail -n 1 "$work/log")" && return 1; }
	(cd -- "$work" && strace_apt "$work" source --download-only strace) >"$work/log" 2>&1 ||
		{ say "downloading strace's source failed: $(tail -n 1 "$work/log")" && return 1; }
	tar -xf "$work"/strace_*.orig.tar.xz -C "$work/source" --strip-components 1 >"$work/log" 2>&1 ||
		{ say "unpacking strace's source failed: $(tail -n 1 "$work/log")" && return 1; }
}

# make_strace_programs DIR: from DIR/work/source to DIR/programs. Says why when it cannot.
make_strace_programs() {
	local dir=$1 log=$1/log names
	mkdir -p "$dir/work/build"
	names=$(awk 'NF && !/^#/ { print $1 }' "$strace_list")
	# What all are compiled with is made first, not beside them.
	# shellcheck disable=SC2086 # one word a program
	(
		cd -- "$dir/work/build" &&
			../source/configure --enable-mpers=no --disable-dependency-tracking &&
			cd tests &&
			make scno.h &&
			make libtests.a &&
			make -j "$(nproc)" $names &&
			cp -- $names "$dir/programs"
	) >"$log" 2>&1 || { say "building strace's test programs failed: $(tail -n 1 "$log")" && return 1; }
}
