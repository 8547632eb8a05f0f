#!/usr/bin/env bash
# IOscope, figure 7: a server of Cassandra indexes all documents of five SSTables, once with calls and
# once with mapped files, and reads some of them by their ids. Throughput, use of the disk, processor
# modes, and offsets over time. Which bytes were read is compared with the chunks that the SSTables
# themselves list. Cassandra comes from Maven's central repository, about 50 MB.
#
#   examples/papers/ioscope/cassandra.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin ioscope-cassandra "$@"
need file /usr/bin/python3 python3
need command javac openjdk-17-jdk-headless openjdk-11-jdk-headless default-jdk-headless
need command mvn maven
case $(javac -version 2>&1) in
"javac 11."* | "javac 17."*) ;;
*) fail "$(javac -version 2>&1) is the Java here" "Cassandra 4.1 runs with Java 11 and 17: put one of them first in PATH" ;;
esac

rows=${quick:+3000}
rows=${rows:-60000}
reads=${quick:+300}
reads=${reads:-4000}

lib=$(cache_dir)/cassandra
if [ ! -e "$lib/complete" ]; then
	logged "fetching Cassandra with Maven" mvn -q -B -f "$here/cassandra/pom.xml" dependency:copy-dependencies -DoutputDirectory="$lib" ||
		fail "Cassandra could not be fetched" "Maven's message is above"
	: >"$lib/complete"
fi
# Any local user can reach the server's JMX port and run code in the server, so it runs as nobody. It may be unable to read the
# cache and the checkout, so it gets copies.
as_nobody=(setpriv --reuid nobody --regid nogroup --clear-groups --)
chmod 755 "$work"
mkdir -- "$work/classes" "$work/conf" "$work/lib"
mkdir -- "$work/data" "$work/commitlog" "$work/saved_caches" "$work/hints" "$work/cdc" "$work/home"
chown nobody:nogroup -- "$work/data" "$work/commitlog" "$work/saved_caches" "$work/hints" "$work/cdc" "$work/home"
install -m 644 -t "$work/lib" -- "$lib"/*.jar
install -m 644 -t "$work/conf" -- "$here/cassandra/java.options"
javac -cp "$work/lib/*" -d "$work/classes" "$here/cassandra/Documents.java"

port=$((20000 + RANDOM % 10000))
cat >"$work/conf/logback.xml" <<'XML'
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %level [%thread] %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
XML

# configure MODE: how the server reads its files.
configure() {
	cat >"$work/conf/cassandra.yaml" <<YAML
cluster_name: fathom
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
data_file_directories: ['$work/data']
commitlog_directory: '$work/commitlog'
saved_caches_directory: '$work/saved_caches'
hints_directory: '$work/hints'
cdc_raw_directory: '$work/cdc'
# One part of the documents fits into it, so that each flush writes a whole part.
memtable_heap_space: 400MiB
commitlog_sync: periodic
commitlog_sync_period: 10000ms
endpoint_snitch: SimpleSnitch
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
native_transport_port: $port
storage_port: $((port + 1))
disk_access_mode: $1
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{seeds: '127.0.0.1:$((port + 1))'}]
YAML
}

# cassandra WORDS...: a program of Cassandra's. Nothing is kept in the user's home directory.
cassandra() {
	cd -- "$work/home"
	exec "${as_nobody[@]}" java "@$work/conf/java.options" -Duser.home="$work/home" -Djava.awt.headless=true \
		-Dcassandra.config="file://$work/conf/cassandra.yaml" -Dcassandra.storagedir="$work/home" \
		-cp "$work/conf:$work/classes:$work/lib/*" "$@"
}
documents() {
	(cassandra -Xmx256m -XX:TieredStopAtLevel=1 Documents "$port" "$@") >"$work/client.log" 2>&1 || {
		tail -n 20 "$work/client.log" "$work/server.log" >&2
		fail "the client of Cassandra failed" "its last lines are above"
	}
}

# start MODE: $server is the process.
start() {
	configure "$1"
	cassandra -Xms1g -Xmx1g -XX:+UseSerialGC -javaagent:"$(echo "$work/lib"/jamm-*.jar)" -Dcassandra-foreground=yes \
		-Dcassandra.jmx.local.port="$((port + 2))" -Dcassandra.ring_delay_ms=0 -Dcassandra.skip_wait_for_gossip_to_settle=0 \
		org.apache.cassandra.service.CassandraDaemon >"$work/server.log" 2>&1 &
	server=$!
	servers=("$server")
	await 180 listens_or_ended
	kill -0 "$server" 2>/dev/null || {
		tail -n 20 "$work/server.log" >&2
		fail "Cassandra ended at its start" "its last lines are above"
	}
}
listens_or_ended() {
	# shellcheck disable=SC2217 # the redirection connects
	: <"/dev/tcp/127.0.0.1/$port" || ! kill -0 "$server"
}
stop() {
	kill "$server"
	wait "$server" || true
	servers=()
}

# Nothing of the SSTables in memory.
forget() {
	local file
	for file in "$work"/data/store/documents-*/*; do
		[ ! -f "$file" ] || {
			sync "$file"
			dd if="$file" iflag=nocache count=0 status=none
		}
	done
}

# recorded SESSION WORDS...: what the server does while a client asks it for something.
recorded() {
	local session=$1 recorder
	shift
	forget
	# Not by `record`: the signal below has to reach fathom itself.
	"$fathom" record --quiet --force -o "$(fathom_on "$session")" -p "$server" &
	recorder=$!
	servers+=("$recorder")
	await 30 test -e "$(fathom_on "$session")/session.json"
	documents "$@"
	kill "$recorder"
	wait "$recorder"
	servers=("$server")
}

start standard
documents fill "$rows" "$((port + 2))"
tables=$(echo "$work"/data/store/documents-*)
# The chunks of each SSTable, with offsets and bytes, as its own list has them.
/usr/bin/python3 - "$tables" <<'PY' | sort >"$work/chunks"
import pathlib
import struct
import sys

for info in pathlib.Path(sys.argv[1]).glob("*-CompressionInfo.db"):
    data = info.with_name(info.name.replace("-CompressionInfo.db", "-Data.db"))
    with open(info, "rb") as content:

        def number(form):
            return struct.unpack(form, content.read(struct.calcsize(form)))[0]

        # The compressor, its options, the size of a chunk, the largest that is compressed, the size of all.
        content.read(number(">H"))
        for _ in range(2 * number(">i")):
            content.read(number(">H"))
        content.read(4 + 4 + 8)
        offsets = [number(">q") for _ in range(number(">i"))]
    for begin, end in zip(offsets, [*offsets[1:], data.stat().st_size]):
        print(f"{data.name},{begin},{end - begin}")
PY
{
	echo "sstable,mib,chunks"
	awk -F, '{ bytes[$1] += $3; chunks[$1]++ } END { for (s in bytes) printf "%s,%.2f,%d\n", s, bytes[s] / 1048576, chunks[s] }' "$work/chunks"
} >"$work/sizes.csv"

recorded standard index
recorded by-id read "$reads" "$rows"
stop
# What is mapped stays in memory, so the server is a new one.
forget
start mmap
recorded mmap index
stop

# Accesses to the data of the SSTables: calls, and faults of mapped files. Requests of the first fault of
# a file that was mapped before the recording have no path: the fault has it.
accesses="
	WITH accesses AS (
		SELECT parse_filename(path) AS sstable, ts_ns, dur_ns, file_offset, ret AS bytes FROM syscalls
		WHERE path LIKE '$tables/nb-%-Data.db' AND syscall = 'pread64' AND ret > 0
		UNION ALL SELECT parse_filename(path), ts_ns, dur_ns, file_offset, NULL FROM faults
		WHERE path LIKE '$tables/nb-%-Data.db'
	),
	requests AS (
		SELECT parse_filename(path) AS sstable, ts_ns, bytes FROM (
			SELECT coalesce(block.path, faults.path) AS path, block.ts_ns, bytes FROM block LEFT JOIN faults USING (rid) WHERE op = 'read')
		WHERE path LIKE '$tables/nb-%-Data.db'
	)"

# rows SESSION: a row per SSTable.
rows() {
	csv "$1" "$accesses
		SELECT '$1' AS session, sstable, accesses, percent_forward, read_mib, device_reads, device_mib FROM (
			SELECT sstable, count(*) AS accesses, round(sum(bytes) / 1048576, 2) AS read_mib,
				round(100 * count(*) FILTER (step >= 0) / nullif(count(step), 0), 1) AS percent_forward
			FROM (SELECT *, file_offset - lag(file_offset) OVER (PARTITION BY sstable ORDER BY ts_ns) AS step FROM accesses)
			GROUP BY sstable)
		LEFT JOIN (SELECT sstable, count(*) AS device_reads, round(sum(bytes) / 1048576, 2) AS device_mib FROM requests GROUP BY sstable)
			USING (sstable)
		ORDER BY sstable" >"$work/rows.csv"
	{
		echo "sstable,chunks_read"
		# Each SSTable once more, as one without such a chunk has a row, too.
		{
			tail -n +2 "$work/sizes.csv"
			csv "$1" "$accesses SELECT DISTINCT sstable, file_offset, bytes FROM accesses" | tail -n +2 | tr -d '"' | sort |
				comm -12 - "$work/chunks"
		} | cut -d, -f1 | sort | uniq -c | awk '{ print $2 "," ($1 > 1 ? $1 - 1 : "") }'
	} >"$work/read.csv"
	figure beside "$work/sizes.csv" sstable <"$work/rows.csv" | figure beside "$work/read.csv" sstable
}
{
	rows standard
	rows mmap | tail -n +2
	rows by-id | tail -n +2
} >"$work/table.csv"
heading "Accesses to the SSTables"
figure table <"$work/table.csv"
cat <<'TEXT'

standard, mmap: the index is built, with calls and with mapped files (accesses are page faults).
by-id: documents are read in no order. chunks_read: chunks of the SSTable's own list that a call has read,
with their offsets and sizes. percent_forward: accesses that are not before the one before.
TEXT

heading "Throughput"
{
	echo "session,seconds,mib_per_s,read_amplification,peak_disk_percent,on_cpu_s,wants_cpu_s"
	for session in standard mmap by-id; do
		csv "$session" "$accesses,
			queue AS (SELECT device, ts_ns, in_device, lead(ts_ns) OVER (PARTITION BY device ORDER BY ts_ns) - ts_ns AS for_ns FROM device_queue),
			busy AS (SELECT sum(for_ns) FILTER (in_device > 0) / 1e7 AS percent FROM queue GROUP BY device, ts_ns // 1000000000)
			SELECT '$session', round(seconds, 2), round((SELECT sum(bytes) FROM requests) / 1048576 / seconds, 1),
				round((SELECT sum(bytes) FROM accesses) / (SELECT sum(bytes) FROM requests), 1),
				(SELECT round(max(percent), 1) FROM busy),
				(SELECT round(sum(time_ns) FILTER (state = 'running') / 1e9, 1) FROM thread_states),
				(SELECT round(sum(time_ns) FILTER (state = 'runnable') / 1e9, 1) FROM thread_states)
			FROM (SELECT (max(ts_ns + dur_ns) - min(ts_ns)) / 1e9 AS seconds FROM accesses)" | tail -n +2
	done
} >"$work/throughput.csv"
figure table <"$work/throughput.csv"
cat <<'TEXT'

mib_per_s: from the device. on_cpu_s, wants_cpu_s: of all threads of the server.

IOscope: a stable throughput, the disk is used for up to 30 %, the processors for up to 150 % of a core; the
largest SSTable is read from its beginning to its end, and so are the others.
TEXT

# When the SSTables are accessed: seconds since the first access.
largest=$(sort -t, -k2 -g -r "$work/sizes.csv" | head -n 1 | cut -d, -f1)
for session in standard mmap by-id; do
	csv "$session" "$accesses
		SELECT (ts_ns - (SELECT min(ts_ns) FROM accesses)) / 1e9 AS x, file_offset / 1048576 AS y, sstable AS series
		FROM accesses ORDER BY series, x" >"$work/dots.csv"
	figure dots "$(picture "$session")" --title "Offsets of five SSTables ($session)" --x "seconds" --y "MiB of the file" <"$work/dots.csv"
	grep -E "^x,|$largest" "$work/dots.csv" |
		figure dots "$(picture "$session-largest")" --title "Offsets of the largest SSTable ($session)" --x "seconds" --y "MiB of the file"
done
# Bytes from the device, part of the time in which it works, and processors of the whole machine.
for session in standard mmap; do
	csv "$session" "$accesses,
		start AS (SELECT min(ts_ns) AS start_ns, max(ts_ns) AS end_ns FROM accesses),
		seconds AS (SELECT unnest(range((end_ns - start_ns) // 1000000000 + 1)) AS x FROM start),
		moved AS (SELECT (ts_ns - start_ns) // 1000000000 AS x, sum(bytes) / 1048576 AS mib FROM requests, start GROUP BY 1)
		SELECT x, coalesce(mib, 0) AS y, '$session' AS series FROM seconds LEFT JOIN moved USING (x) ORDER BY x" >"$work/$session.csv"
	csv "$session" "$accesses,
		start AS (SELECT min(ts_ns) AS start_ns, max(ts_ns) AS end_ns FROM accesses)
		SELECT (ts_ns - start_ns) // 1000000000 + 1 AS x, unnest(['user', 'system', 'interrupt', 'iowait']) AS series,
			unnest([user_ns, system_ns, interrupt_ns, iowait_ns]) / (ended_at_ns - ts_ns) * 100 AS y
		FROM machine, start WHERE ended_at_ns >= start_ns AND ts_ns <= end_ns ORDER BY ts_ns" |
		figure bars "$(picture "$session-cpu")" --stacked --title "Processor modes of the machine ($session)" --x "seconds" --y "% of a processor"
done
{
	cat "$work/standard.csv"
	tail -n +2 "$work/mmap.csv"
} | figure lines "$(picture throughput)" --title "Bytes from the device" --x "seconds" --y "MiB in the second"

for session in standard mmap by-id; do
	heading "Findings: $session"
	findings "$session"
done
where_sessions_are
