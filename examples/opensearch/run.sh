#!/usr/bin/env bash
# OpenSearch and the file with which it finds out whether its disk works: every check opens it
# twice. The node comes from Maven's central repository, about 50 MB.
#
#   examples/opensearch/run.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin opensearch "$@"
need command javac default-jdk-headless
need command mvn maven

seconds=${quick:+5}
seconds=${seconds:-60}
interval=${quick:+500ms}
interval=${interval:-5s}

lib=$(cache_dir)/opensearch
if [ ! -e "$lib/complete" ]; then
	logged "fetching OpenSearch with Maven" mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$lib" ||
		fail "OpenSearch could not be fetched" "Maven's message is above"
	: >"$lib/complete"
fi
mkdir -- "$work/classes"
javac -cp "$lib/*" -d "$work/classes" "$here/Node.java"

# Checks at $interval instead of each minute, so that there are some to see.
record node -- java -Xmx512m -cp "$work/classes:$lib/*" Node "$work/data" "$seconds" "$interval" >"$work/output" 2>&1 || {
	tail -n 20 "$work/output" >&2
	fail "OpenSearch ended with an error" "its output is above"
}

heading "What a node does"
table node "
	SELECT class, count(*) AS calls, round(100 * count(*) / sum(count(*)) OVER ())::INTEGER AS percent,
		count(DISTINCT file_id) AS files, count(DISTINCT tid) AS threads
	FROM syscalls GROUP BY class ORDER BY calls DESC"

heading "One check of the disk"
table node "
	WITH calls AS (
		SELECT *, sum((syscall = 'openat' AND flags LIKE '%O_EXCL%')::INTEGER) OVER (ORDER BY ts_ns) AS pass
		FROM syscalls WHERE path LIKE '%/.opensearch_temp_file'
	)
	SELECT ((ts_ns - min(ts_ns) OVER ()) / 1e3)::INTEGER AS us, syscall, fd, coalesce(flags, '') AS flags, ret
	FROM calls WHERE pass = 2 AND errno IS NULL ORDER BY ts_ns"

heading "Findings"
findings node
[ -n "$quick" ] || { echo && diagnose node; }
where_sessions_are
