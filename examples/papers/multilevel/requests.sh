#!/usr/bin/env bash
# Multilevel trace analysis, figures 11 to 15 and section 4.1: response times of a web server by class
# (from the cache, from the disk, from a disk that a backup keeps busy), the ratio of cache hits of
# each request, where fast and slow ones spend their time, the queue of the disk and who fills it;
# and the part of a page that a plugin takes.
#
#   examples/papers/multilevel/requests.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin multilevel-requests "$@"
need file /usr/bin/python3 python3
need command fio fio
seconds=${quick:+3}
seconds=${seconds:-18}
mib=${quick:+128}
mib=${mib:-768}
port=$((20000 + RANDOM % 10000))
python=/usr/bin/python3

for file in database archive; do
	fio --name=lay-out --filename="$work/$file" --size="${mib}m" --rw=write --bs=1m --end_fsync=1 --output=/dev/null
done
sync
# Nothing of the database is in memory but its first tenth.
dd if="$work/database" iflag=nocache count=0 status=none
dd if="$work/database" of=/dev/null bs=1M count=$((mib / 10 + 1)) status=none

# The backup runs in the last third of the time.
backup() {
	sleep $((seconds * 2 / 3))
	local end=$((SECONDS + seconds / 3 + 1))
	while [ "$SECONDS" -lt "$end" ]; do
		for _ in 1 2 3 4; do
			dd if="$work/archive" of=/dev/null bs=4M iflag=direct status=none &
		done
		wait
	done
}

record server --syscalls all -- "$python" "$here/server.py" serve "$port" "$work/database" 4 "$work/spans.json" &
servers=($!)
ask() { "$python" "$here/server.py" ask "$port" "$1" "$2"; }
up() { "$python" -c "import socket; socket.create_connection(('127.0.0.1', $port)).close()"; }
await 30 up
backup &
backup=$!
asked=$(ask "$seconds" "$work/answers")
"$python" -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:$port/end')"
wait "${servers[0]}"
servers=()
wait "$backup" || true
"$fathom" import --into "$(fathom_on server)" "$work/spans.json" >/dev/null 2>&1

heading "Requests and spans"
spans=$(value server "SELECT count(*) FROM spans WHERE name = 'GET /page'")
echo "requests $asked, spans $spans, reads $(value server "SELECT count(*) FROM syscalls WHERE path = '$work/database' AND syscall = 'pread64'"), lost $(value server "SELECT lost FROM session")"

# A request is a span; the reads of the database are in the span inside it. Others are requests of
# other processes that waited for the device, or were in it, when one of ours was submitted.
requests="
	queue AS (SELECT device, ts_ns, waiting_others + in_device_others AS others FROM device_queue),
	waiting AS (
		SELECT rid, max(others) AS others FROM block ASOF JOIN queue ON block.device = queue.device AND block.queued_at_ns >= queue.ts_ns
		WHERE op = 'read' GROUP BY rid
	),
	requests AS (
		SELECT page.span_id, page.ts_ns, page.dur_ns, sum(p.pages) AS pages, coalesce(sum(p.misses), 0) AS misses, max(w.others) AS others
		FROM spans AS page JOIN spans AS inside ON inside.parent_span_id = page.span_id AND inside.name = 'database'
		JOIN span_calls AS c ON c.span_id = inside.span_id
		LEFT JOIN pagecache AS p ON p.rid = c.rid LEFT JOIN waiting AS w ON w.rid = c.rid
		WHERE page.name = 'GET /page' GROUP BY ALL
	),
	classes AS (
		SELECT *, 1 - misses / pages AS hit_ratio, CASE WHEN misses = 0 THEN 'C1 cache' WHEN coalesce(others, 0) > 3 THEN 'C3 busy disk'
			ELSE 'C2 disk' END AS class FROM requests
	)"

heading "Figures 11, 12 and 14: classes"
cat >"$work/paper.csv" <<'CSV'
class,paper
C1 cache,10 ms
C2 disk,180 to 220 ms
C3 busy disk,600 to 800 ms
CSV
csv server "WITH $requests
	SELECT class, count(*) AS requests, round(median(dur_ns) / 1e6, 2) AS median_ms, round(quantile_disc(dur_ns, 0.99) / 1e6, 2) AS p99_ms,
		round(avg(hit_ratio), 2) AS hit_ratio, round(avg(others), 1) AS requests_of_others
	FROM classes GROUP BY class ORDER BY class" | figure beside "$work/paper.csv" class | figure table
csv server "WITH $requests SELECT (ts_ns - (SELECT min(ts_ns) FROM classes)) / 1e9 AS x, dur_ns / 1e6 AS y, class AS series FROM classes ORDER BY class" |
	figure dots "$(picture latency)" --log-y --title "Response times" --x "second" --y "ms"
csv server "WITH $requests SELECT hit_ratio AS x, dur_ns / 1e6 AS y, class AS series FROM classes ORDER BY class" |
	figure dots "$(picture hits)" --log-y --title "Cache hits of a request and its time" --x "part of its pages in the cache" --y "ms"

heading "Figure 13: correlation"
csv server "WITH $requests SELECT round(corr(hit_ratio, ln(dur_ns)), 2) AS correlation_of_hits_and_log_time, count(*) AS requests FROM classes" | figure table

heading "Where fast and slow requests spend their time, µs per request"
layers="WITH $requests,
	parts AS (SELECT class, s.layer, sum(s.self_ns) AS ns FROM classes JOIN spans AS inside ON inside.parent_span_id = classes.span_id
		JOIN span_calls AS c ON c.span_id = inside.span_id JOIN all_slices AS s ON s.rid = c.rid WHERE inside.name = 'database' GROUP BY ALL)"
csv server "$layers SELECT class AS x, layer AS series, round(ns / (SELECT count(*) FROM classes AS o WHERE o.class = parts.class) / 1000, 1) AS y
	FROM parts ORDER BY x, series" >"$work/layers.csv"
figure bars "$(picture layers)" --stacked --title "Database part of a request" --y "µs" <"$work/layers.csv"
figure table <"$work/layers.csv"

heading "Figure 15: the queue, and who fills it"
csv server "SELECT floor((ts_ns - (SELECT started_at_ns FROM session)) / 1e9 * 2) / 2 AS x, avg(waiting + in_device) AS y, 'all' AS series FROM device_queue GROUP BY 1
	UNION ALL SELECT floor((ts_ns - (SELECT started_at_ns FROM session)) / 1e9 * 2) / 2, avg(waiting_others + in_device_others), 'of others' FROM device_queue GROUP BY 1 ORDER BY series, x" |
	figure lines "$(picture queue)" --title "Requests in the queue and in the device" --x "second" --y "requests"
csv server "SELECT coalesce(comm, '') AS program, rid IS NOT NULL AS recorded, count(*) AS requests, (sum(bytes) / 1048576)::INTEGER AS mib
	FROM block WHERE op = 'read' GROUP BY ALL ORDER BY mib DESC LIMIT 4" | figure table

heading "Section 4.1: the part of a page that each span takes"
csv server "SELECT name, spans, round(p50_ns / 1e6, 2) AS median_ms, round(100 * p50_ns / max(p50_ns) OVER (), 0) AS percent_of_page, calls
	FROM by_span_name ORDER BY p50_ns DESC" | figure table
echo
echo "Paper: a plugin that checks sessions takes 70 % of each page; some pages are 50 % in the database."
where_sessions_are
