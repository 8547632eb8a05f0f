# shellcheck shell=bash
# The showcase of `./do run`: a Redis server with its append-only file and its
# log, driven by redis-benchmark, recorded and reported; then the same load
# with and without fathom, to see what recording costs.

# Repetitions and requests of the comparison.
compare_pairs=3
compare_requests=1000000

showcase() {
	local session number=1
	need_root "recording"
	mkdir -p sessions
	while [ -e "sessions/redis-demo-$number.fathom" ]; do number=$((number + 1)); done
	session=sessions/redis-demo-$number.fathom
	# On the disk of the clone, as /tmp may be memory.
	demo_dir=$(mktemp -d "$root/sessions/.redis.XXXXXX")
	demo_pid=
	trap demo_cleanup EXIT

	note "recording redis-server under redis-benchmark into $session"
	demo_start recorded "$session"
	demo_load
	demo_stop
	./"$fathom" report "$session"
	compare_throughput
	cat <<END

The page, to look at it in a browser: $fathom ui sessions
The report again: $fathom report $session
What is wrong with it, and what to do instead: $fathom diagnose $session
Record a program of your own:
  $(is_root || printf 'sudo ')$fathom record -o mine.fathom -- COMMAND ARGUMENTS...
END
}

# demo_start recorded|plain [SESSION]: starts the server and waits for it.
# Redis gets a socket in its own directory: no port to collide with.
demo_start() {
	local how=$1 session=${2:-} tries=0
	local server=(redis-server --port 0 --unixsocket redis.sock --daemonize no
		--save '' --appendonly yes --appendfsync everysec
		--logfile redis.log --loglevel notice)
	local user=()
	is_root || user=(--user "$(id -un)")
	rm -rf -- "$demo_dir/data"
	mkdir -- "$demo_dir/data"
	if [ "$how" = recorded ]; then
		(cd "$demo_dir/data" && as_root "$root/$fathom" record "${user[@]}" \
			-o "$(absolute "$session")" -- "${server[@]}") >"$demo_dir/output" 2>&1 </dev/null &
	else
		(cd "$demo_dir/data" && exec "${server[@]}") >"$demo_dir/output" 2>&1 </dev/null &
	fi
	demo_pid=$!
	until demo_cli ping >/dev/null 2>&1; do
		if ! kill -0 "$demo_pid" 2>/dev/null || [ $tries -ge 300 ]; then
			demo_failed "the server did not start"
		fi
		tries=$((tries + 1))
		sleep 0.1
	done
}

demo_cli() { (cd "$demo_dir/data" && redis-cli -s redis.sock "$@"); }

# What is recorded: writes that reach the append-only file, a rewrite of that
# file by a child process, a snapshot, and a talkative log.
demo_load() {
	demo_cli config set loglevel debug >/dev/null
	(cd "$demo_dir/data" && redis-benchmark -s redis.sock -t set,lpush -n 100000 -P 16 -q) >/dev/null
	demo_cli bgrewriteaof >/dev/null
	(cd "$demo_dir/data" && redis-benchmark -s redis.sock -t set -n 20000 -r 10000 -d 1024 -q) >/dev/null
	demo_settle
	demo_cli save >/dev/null
}

# Waits until the rewriting child is done.
demo_settle() {
	local tries=0
	while demo_cli info persistence | grep -Eq '^aof_rewrite_(in_progress|scheduled):1' &&
		[ $tries -lt 300 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
}

# Ends the server as its owner would; fathom ends by itself when it is gone.
demo_stop() {
	local status=0
	demo_cli shutdown nosave >/dev/null 2>&1 || true
	wait "$demo_pid" || status=$?
	demo_pid=
	[ "$status" -eq 0 ] || demo_failed "the server, or its recording, ended with status $status"
}

demo_failed() {
	note "error: $1; its output:"
	{ tail -n 20 "$demo_dir/output" "$demo_dir/data/redis.log" 2>/dev/null || true; } |
		sed 's/^/    /' >&2
	note "what this kernel offers:"
	as_root ./"$fathom" doctor >&2 || true
	exit 1
}

demo_cleanup() {
	if [ -n "$demo_pid" ]; then
		demo_cli shutdown nosave >/dev/null 2>&1 || true
		wait "$demo_pid" || true
	fi
	rm -rf -- "$demo_dir"
}

absolute() { case $1 in /*) say "$1" ;; *) say "$root/$1" ;; esac; }

# Throughput without and with fathom, alternating so that drift of the machine
# meets both alike; medians, and the median of the pairs' ratios.
compare_throughput() {
	local pair how
	note "comparing throughput with and without recording ($compare_pairs alternating pairs)"
	for pair in $(seq $compare_pairs); do
		for how in plain recorded; do
			rm -rf -- "$demo_dir/compare.fathom"
			demo_start "$how" "$demo_dir/compare.fathom"
			(cd "$demo_dir/data" && redis-benchmark -s redis.sock -t set,lpush \
				-n $compare_requests -P 16 --csv) >>"$demo_dir/$how.csv"
			demo_stop
		done
		note "pair $pair of $compare_pairs done"
	done
	printf '\nredis-benchmark, requests per second: medians of %d runs of %d requests each;\n' \
		$compare_pairs $compare_requests
	printf 'the ratio is the median of the ratios of the pairs, in brackets the lowest and the highest\n'
	printf '  %-8s %14s %14s  %s\n' test 'not recorded' recorded ratio
	local test
	for test in SET LPUSH; do compare_test $test; done
}

# compare_test TEST: one line of the comparison. The second column of
# redis-benchmark's lines is requests per second.
compare_test() {
	paste -d , <(throughputs plain "$1") <(throughputs recorded "$1") | awk -F , -v test="$1" '
		function median(v, n,  i, j, t) {
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && v[j - 1] > v[j]; j--) {
					t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
				}
			return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
		}
		$1 > 0 && $2 > 0 {
			plain[++n] = $1 + 0
			recorded[n] = $2 + 0
			ratio[n] = $2 / $1
		}
		END {
			if (!n) { printf "  %-8s not measured\n", test; exit }
			printf "  %-8s %14.0f %14.0f", test, median(plain, n), median(recorded, n)
			r = median(ratio, n)
			printf "  %.3f [%.3f to %.3f]\n", r, ratio[1], ratio[n]
		}'
}

throughputs() {
	tr -d '"' <"$demo_dir/$1.csv" | awk -F , -v test="$2" '$1 == test { print $2 }'
}
