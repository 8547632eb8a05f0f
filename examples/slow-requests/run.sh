#!/usr/bin/env bash
# Why some requests of a server are slow: some miss the page cache, and some of those wait
# behind a backup that fills the queue of the device. Only the server is recorded; fathom
# names the backup all the same, since all requests to a device share its queue.
#
#   examples/slow-requests/run.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin slow-requests "$@"
need command fio fio

seconds=${quick:+3}
seconds=${seconds:-12}
size=${quick:+256}
size=${size:-1024}

fio --name=lay-out --filename="$work/database" --size="${size}m" --rw=write --bs=1m --end_fsync=1 \
	--output=/dev/null
fio --name=lay-out --filename="$work/archive" --size="${size}m" --rw=write --bs=1m --end_fsync=1 \
	--output=/dev/null
# Nothing of the database is in the page cache but its first tenth, which half of the
# requests are for.
sync
dd if="$work/database" iflag=nocache count=0 status=none
dd if="$work/database" of=/dev/null bs=1M count=$((size / 10)) status=none

# A server answers some hundred requests a second, each with a read of 16 KiB somewhere in
# its database. The backup begins when two thirds of the time are over.
backup() {
	local end=$((SECONDS + seconds / 3 + 1))
	while [ "$SECONDS" -lt "$end" ]; do
		for _ in 1 2 3 4 5 6; do
			dd if="$work/archive" of=/dev/null bs=4M iflag=direct status=none &
		done
		wait
	done
}
(
	sleep "$((seconds * 2 / 3))"
	backup
) &
backup=$!
record server -- fio --name=server --filename="$work/database" --rw=randread --bs=16k \
	--random_distribution=zoned:50/10:50/90 --ioengine=psync --invalidate=0 --fadvise_hint=random \
	--thinktime=2000 --time_based \
	--runtime="$seconds" --output=/dev/null
wait "$backup" || true

balance server

# A request is one read of the database. Its misses are pages that the cache did not have;
# others are requests of other processes that waited for the device, or that it had, when
# the first of ours was submitted.
requests="
	queue AS (SELECT device, ts_ns, waiting_others + in_device_others AS others FROM device_queue),
	requests AS (
		SELECT s.rid, s.ts_ns, s.dur_ns, s.bytes, coalesce(p.pages, 0) AS pages, coalesce(p.misses, 0) AS misses,
			b.others, b.preparing_ns, b.waiting_ns, b.service_ns
		FROM syscalls AS s
		LEFT JOIN pagecache AS p USING (rid)
		LEFT JOIN (
			SELECT rid, max(others) AS others,
				sum(coalesce(inserted_at_ns, started_at_ns) - queued_at_ns) AS preparing_ns,
				sum(issued_at_ns - coalesce(inserted_at_ns, started_at_ns)) AS waiting_ns,
				sum(completed_at_ns - issued_at_ns) AS service_ns
			FROM block ASOF JOIN queue ON block.device = queue.device AND block.queued_at_ns >= queue.ts_ns
			WHERE op = 'read' GROUP BY rid
		) AS b USING (rid)
		WHERE s.syscall = 'pread64' AND s.path LIKE '%/database'
	),
	classes AS (
		SELECT *, CASE
			WHEN misses = 0 THEN 'C1 from the page cache'
			WHEN others > 4 THEN 'C3 from a device that others keep busy'
			ELSE 'C2 from the device' END AS class
		FROM requests
	)"

heading "Requests by what served them"
table server "
	WITH $requests
	SELECT class, count(*) AS requests, median(dur_ns)::BIGINT AS median_ns,
		quantile_disc(dur_ns, 0.99) AS p99_ns, max(dur_ns) AS max_ns,
		round(1 - sum(misses) / sum(pages), 2) AS hit_ratio, round(avg(others), 1) AS requests_of_others
	FROM classes GROUP BY class ORDER BY class"

heading "Their parts in the block layer, mean ns"
table server "
	WITH $requests
	SELECT class, avg(preparing_ns)::BIGINT AS preparation_ns, avg(waiting_ns)::BIGINT AS waiting_ns,
		avg(service_ns)::BIGINT AS service_ns
	FROM classes WHERE misses > 0 AND service_ns IS NOT NULL GROUP BY class ORDER BY class"

heading "Where their time went, mean ns of a request"
table server "
	WITH $requests
	SELECT class, layer, name, (sum(self_ns) / any_value(n))::BIGINT AS self_ns
	FROM all_slices JOIN classes USING (rid) JOIN (SELECT class, count(*) AS n FROM classes GROUP BY class) USING (class)
	GROUP BY class, layer, name
	QUALIFY row_number() OVER (PARTITION BY class ORDER BY sum(self_ns) DESC) <= 4
	ORDER BY class, self_ns DESC"

heading "Queue of the device over time, means of the lengths at each change"
table server "
	WITH busy AS (
		SELECT device FROM block JOIN syscalls AS s USING (rid)
		WHERE s.path LIKE '%/database' GROUP BY device ORDER BY count(*) DESC LIMIT 1
	)
	SELECT floor((ts_ns - (SELECT started_at_ns FROM session)) / 1e9 * 2) / 2 AS second,
		round(avg(waiting), 1) AS waiting, round(avg(in_device), 1) AS in_device,
		round(avg(waiting_others + in_device_others), 1) AS of_others,
		bar(avg(waiting + in_device), 0, 64, 32) AS length
	FROM device_queue SEMI JOIN busy USING (device)
	GROUP BY 1 ORDER BY 1"

heading "Who filled it"
table server "
	SELECT coalesce(comm, '') AS comm, rid IS NOT NULL AS recorded, op, count(*) AS requests,
		sum(bytes)::BIGINT AS bytes, median(completed_at_ns - issued_at_ns)::BIGINT AS device_median_ns
	FROM block GROUP BY ALL ORDER BY bytes DESC LIMIT 6"
[ -n "$quick" ] || printf '\nThe session is %s/server.fathom: fathom report, fathom query, fathom ui.\n' "$sessions"
