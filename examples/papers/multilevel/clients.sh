#!/usr/bin/env bash
# Multilevel trace analysis, figure 16: requests per second of a web server against the number of
# clients, with no tracing, with what an analysis needs, and with everything.
#
#   examples/papers/multilevel/clients.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin multilevel-clients "$@"
need command apache2 apache2
need command ab apache2-utils
clients=(1 10 100 500 1000)
requests=10000
rounds=${quick:+1}
rounds=${rounds:-3}
if [ -n "$quick" ]; then
	clients=(1 10)
	requests=1000
fi
port=$((20000 + RANDOM % 10000))
modules=/usr/lib/apache2/modules
mkdir -- "$work/pages"
head -c 10000 /dev/zero | tr '\0' x >"$work/pages/page.html"
chmod -R a+rX "$work"
cat >"$work/apache.conf" <<CONF
ServerRoot $work
ServerName localhost
PidFile $work/apache.pid
Mutex file:$work
Listen 127.0.0.1:$port
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
User www-data
Group www-data
DocumentRoot $work/pages
EnableSendfile Off
EnableMMAP Off
ErrorLog $work/errors
CONF

# What each setup records. Web requests need reads, opens and sockets; the rest is everything.
setups=(
	"none|"
	"required events|--syscalls data --layers syscall"
	"all calls|--syscalls all --layers syscall"
	"all events|--syscalls all"
)

# load CLIENTS SESSION WORDS...: requests per second, those that failed.
load() {
	local count=$1 session=$2 before=()
	shift 2
	[ "$session" = none ] || before=("$fathom" record --quiet --force -o "$(fathom_on "$session")" "$@" --)
	"${before[@]}" apache2 -f "$work/apache.conf" -D FOREGROUND >/dev/null 2>&1 &
	servers=($!)
	await 30 ab -q -n 1 "http://127.0.0.1:$port/page.html"
	ab -q -n "$requests" -c "$count" "http://127.0.0.1:$port/page.html" >"$work/ab" 2>&1 || true
	kill -TERM "$(cat "$work/apache.pid")"
	wait "${servers[0]}" || true
	servers=()
	awk '/^Requests per second/ { rate = $4 } /^Failed requests/ { failed = $3 } /^Complete requests/ { n = $3 }
		END { printf "%s,%d,%d", rate, n, failed }' "$work/ab"
}

{
	echo "clients,setup,requests_per_s,complete,failed,pages_read,lost"
	for ((round = 0; round < rounds; round++)); do
		for count in "${clients[@]}"; do
			for setup in "${setups[@]}"; do
				IFS='|' read -r name flags <<<"$setup"
				read -r -a words <<<"$flags"
				if [ "$name" = none ]; then
					echo "$count,none,$(load "$count" none),,"
				else
					rate=$(load "$count" apache "${words[@]}")
					echo "$count,$name,$rate,$(value apache "SELECT (sum(bytes) FILTER (syscall = 'read' AND path LIKE '%/page.html') // 10000)::BIGINT,
						(SELECT lost FROM session) FROM syscalls")"
				fi
			done
		done
	done
} >"$work/rounds.csv"
heading "Requests per second"
figure medians requests_per_s complete failed pages_read lost <"$work/rounds.csv" | figure ratio requests_per_s setup none percent clients |
	tee "$work/table.csv" | figure table
figure lines "$(picture clients)" --x-column clients --y-column requests_per_s --series-column setup --log-x \
	--title "Apache under ab" --x "clients" --y "requests per second" <"$work/table.csv"
cat <<'TEXT'

Paper: 30,000 requests per second without tracing and with the required events, 21,000 (70 %) with all
events in memory, 19,000 (63 %) with all events on disk.
TEXT
where_sessions_are
