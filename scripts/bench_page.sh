# shellcheck shell=bash
# The benchmark of the page: a session of as many calls as are asked for, made of
# a recording of fio, and web/tests/page/speed.ts on it.

# bench_page [CALLS|SESSION.fathom] [OPTIONS of speed.ts...]
bench_page() {
	local session=10000000
	case ${1:-} in
	'' | -*) ;;
	*)
		session=$1
		shift
		;;
	esac
	case $session in
	*[!0-9]*) session=$(readlink -f -- "$session") ;;
	*) make_large_session "$session" ;;
	esac
	(cd web && "$node" tests/page/speed.ts "$session" "$@")
}

# make_large_session CALLS: sets `session`. Kept for the next time.
make_large_session() {
	local calls=$1 dir=$root/sessions/bench
	session=$dir/page-$calls.fathom
	[ ! -d "$session" ] || return 0
	need_root "recording"
	mkdir -p "$dir"
	if [ ! -d "$dir/recorded.fathom" ]; then
		note "recording fio into ${dir#"$root"/}/recorded.fathom"
		mkdir -p "$dir/work"
		(cd "$dir/work" && as_root "$root/$fathom" record -o "$dir/recorded.fathom" -- fio --name=mix --size=64m \
			--rw=randrw --bs=4k --numjobs=3 --time_based --runtime=4 --fsync=200 --group_reporting) >/dev/null
		as_root rm -rf -- "$dir/work"
	fi
	note "repeating it up to $calls calls in ${session#"$root"/}"
	# The whole workspace, as when fathom is built: what is there is not compiled again.
	cargo build --release --locked --workspace --bin fathom-scale
	target/release/fathom-scale \
		generate "$dir/recorded.fathom" "$session.part" "$calls"
	mv -- "$session.part" "$session"
}
