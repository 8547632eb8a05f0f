#!/usr/bin/env bash
# A slow page of a web application, from the URL down to the queue of the disk: nginx, PHP-FPM and
# MariaDB, as Debian packages them, with a small blog. Pages are served from the cache, from a cold
# cache, or while a backup fills the queue of the device. Only the servers are recorded.
#
#   examples/web-application/run.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin web-application "$@"
php_fpm=$(find /usr/sbin -maxdepth 1 -name 'php-fpm*' | sort -V | tail -n 1)
for program in nginx mariadbd mariadb mariadb-install-db ab curl setpriv "${php_fpm:-php-fpm}"; do
	have "$program" || fail "$program is not installed" "apt-get install nginx-light php-fpm php-mysql mariadb-server apache2-utils curl"
done
extension=$(find /usr/lib/php -name mysqli.so | sort | tail -n 1)
[ -n "$extension" ] || fail "PHP has no extension mysqli" "apt-get install php-mysql"

seconds=${quick:+6}
seconds=${seconds:-18}
posts=${quick:+2000}
posts=${posts:-10000}
mib=${quick:+128}
mib=${mib:-256}
port=$((20000 + RANDOM % 10000))
url=http://127.0.0.1:$port

# The servers run as nobody, in directories of theirs.
as_nobody=(setpriv --reuid nobody --regid nogroup --clear-groups --)
chmod 755 "$work"
# A fast machine answers so many pages that the queries below need more memory than usual.
printf '[query]\nmemory-mib = 4096\n' >"$work/fathom.toml"
export FATHOM_CONFIG=$work/fathom.toml
mkdir -- "$work/data" "$work/run" "$work/log" "$work/www" "$work/www/uploads"
cp -- "$here/app/index.php" "$work/www"
chown nobody:nogroup -- "$work/data" "$work/run" "$work/log" "$work/www/uploads"
cat >"$work/my.cnf" <<CONF
[mariadbd]
datadir = $work/data
socket = $work/run/mariadb.sock
pid-file = $work/run/mariadb.pid
skip-networking
skip-grant-tables
# Little memory of its own, so that reads go through the page cache.
innodb_buffer_pool_size = 8M
innodb_flush_method = fsync
innodb_buffer_pool_load_at_startup = 0
innodb_buffer_pool_dump_at_shutdown = 0
slow_query_log = 1
slow_query_log_file = $work/log/slow-queries
long_query_time = 0.05
CONF
cat >"$work/fpm.conf" <<CONF
[global]
error_log = $work/log/php-fpm.errors
[blog]
listen = $work/run/php.sock
pm = static
pm.max_children = 4
php_admin_value[mysqli.default_socket] = $work/run/mariadb.sock
CONF
printf 'extension = mysqlnd\nextension = %s\n' "$extension" >"$work/php.ini"
cat >"$work/nginx.conf" <<CONF
pid $work/run/nginx.pid;
daemon off;
worker_processes 1;
events { worker_connections 256; }
http {
	log_format times '\$request_method \$uri \$status \$request_time \$upstream_response_time';
	access_log $work/log/access times;
	client_body_temp_path $work/run/body;
	fastcgi_temp_path $work/run/fastcgi;
	proxy_temp_path $work/run/proxy;
	scgi_temp_path $work/run/scgi;
	uwsgi_temp_path $work/run/uwsgi;
	server {
		listen 127.0.0.1:$port;
		root $work/www;
		location /uploads/ { }
		location / {
			include /etc/nginx/fastcgi_params;
			fastcgi_param SCRIPT_FILENAME \$document_root/index.php;
			fastcgi_pass unix:$work/run/php.sock;
		}
	}
}
CONF
sql() { mariadb --no-defaults --skip-ssl -S "$work/run/mariadb.sock" -u root -N "$@"; }

"${as_nobody[@]}" mariadb-install-db --defaults-file="$work/my.cnf" --auth-root-authentication-method=normal --skip-test-db >"$work/log/install" 2>&1 ||
	fail "mariadb-install-db failed" "it says: $(tail -n 3 "$work/log/install")"

# The blog: each post has four comments, which lie far from each other.
"${as_nobody[@]}" mariadbd --defaults-file="$work/my.cnf" --innodb-buffer-pool-size=256M --innodb-flush-log-at-trx-commit=0 \
	--innodb-doublewrite=0 --slow-query-log=0 >"$work/log/seed" 2>&1 &
servers=($!)
await 60 sql -e "SELECT 1"
sql <<SQL
CREATE DATABASE blog;
USE blog;
CREATE TABLE blog.posts (id INT PRIMARY KEY, title VARCHAR(100), body TEXT);
CREATE TABLE blog.comments (id INT PRIMARY KEY, post_id INT, author VARCHAR(40), body TEXT, KEY (post_id));
CREATE TABLE blog.visits (page VARCHAR(40) PRIMARY KEY, count INT);
INSERT INTO blog.posts SELECT seq, concat('Post ', seq), repeat(concat(md5(seq), ' '), 200) FROM seq_1_to_$posts;
INSERT INTO blog.comments SELECT seq, 1 + seq % $posts, md5(-seq), repeat(concat(md5(seq), ' '), 10) FROM seq_1_to_$((4 * posts));
INSERT INTO blog.visits VALUES ('front', 0);
SQL
kill -TERM "${servers[0]}"
wait "${servers[0]}" || true
servers=()
head -c $((mib << 20)) /dev/urandom >"$work/files.1"
for copy in 2 3 4; do cp -- "$work/files.1" "$work/files.$copy"; done
head -c 300000 /dev/urandom >"$work/picture"
# Nothing of the database or the files is in memory.
sync
for file in "$work"/data/blog/* "$work"/data/ib* "$work"/files.*; do
	dd if="$file" iflag=nocache count=0 status=none
done

record server --spans http,fastcgi,mysql --ring-mib 64 -- "${as_nobody[@]}" \
	"$here/servers.sh" "$work" "$php_fpm" &
recorder=$!
# Until it has ended its servers, it is the one to be ended.
servers=("$recorder")
await 60 test -e "$work/run/servers.pid"
await 60 sql -e "SELECT 1"
await 60 curl -sf -o /dev/null "$url/post/$posts"

# Front pages; uploads, and one of them again; then posts. After a third of the time the database leaves the
# cache again and again, as if memory were short, and in the last third a backup reads files.
ab -q -n 100 -c 1 "$url/" >"$work/ab.front"
uploaded=$(curl -sf --data-binary "@$work/picture" -H 'Content-Type: application/octet-stream' "$url/upload")
for _ in 1 2 3; do curl -sf "$url$uploaded" | cmp - "$work/picture"; done
(
	sleep $((seconds * 2 / 3))
	exec "$here/backup.sh" $((seconds / 3 + 1)) "$work/backup.pids" "$work"/files.*
) &
backup=$!
(
	sleep $((seconds / 3))
	while sleep 0.1; do
		for file in "$work"/data/blog/*; do dd if="$file" iflag=nocache count=0 status=none; done
	done
) &
evicts=$!
servers+=("$evicts")
ab -q -l -s 120 -t "$seconds" -n 1000000 -c 2 "$url/random" >"$work/ab.random"
kill "$evicts"
wait "$evicts" || true
servers=("$recorder")
wait "$backup"
sql -e "SHOW GLOBAL STATUS WHERE variable_name IN ('Com_select', 'Com_update')" >"$work/status"
kill -TERM "$(cat "$work/run/servers.pid")"
wait "$recorder"
servers=()

balance server

# A page is the request that nginx received; its trace has the requests that it caused in the other
# servers, and their calls. Others are requests of other processes that waited for the device, or were in
# it, when one of the page was queued.
pages="
	queue AS (SELECT device, ts_ns, waiting_others + in_device_others AS others FROM device_queue),
	behind AS (
		SELECT rid, max(others) AS others, sum(issued_at_ns - queued_at_ns) AS queue_ns, sum(completed_at_ns - issued_at_ns) AS device_ns
		FROM block ASOF JOIN queue ON block.device = queue.device AND block.queued_at_ns >= queue.ts_ns
		WHERE rid IS NOT NULL GROUP BY rid
	),
	inside AS (
		SELECT trace_id, count(*) AS calls, coalesce(sum(p.pages), 0) AS pages, coalesce(sum(p.misses), 0) AS misses, max(b.others) AS others,
			coalesce(sum(b.queue_ns), 0) AS queue_ns, coalesce(sum(b.device_ns), 0) AS device_ns
		FROM span_calls LEFT JOIN pagecache AS p USING (rid) LEFT JOIN behind AS b USING (rid) GROUP BY trace_id
	),
	below AS (
		SELECT trace_id, count(*) FILTER (service LIKE 'php-fpm%' AND kind = 'server') AS php_spans,
			count(*) FILTER (service = 'mariadbd') AS queries, sum(dur_ns) FILTER (service = 'mariadbd') AS database_ns
		FROM spans GROUP BY trace_id
	),
	classes AS (
		SELECT *, CASE WHEN misses = 0 THEN 'C1 cache' WHEN coalesce(others, 0) > 3 THEN 'C3 busy device' ELSE 'C2 cold cache' END AS class
		FROM spans JOIN below USING (trace_id) JOIN inside USING (trace_id)
		WHERE service = 'nginx' AND kind = 'server' AND name = 'GET /random'
	)"

heading "Pages by what served them"
table server "
	WITH $pages
	SELECT class, count(*) AS pages, round(median(dur_ns) / 1e6, 1) AS median_ms, round(quantile_disc(dur_ns, 0.99) / 1e6, 1) AS p99_ms,
		round(1 - sum(misses) / sum(pages), 2) AS hit_ratio, round(avg(queries), 1) AS queries, round(median(database_ns) / 1e6, 1) AS database_ms,
		round(median(queue_ns) / 1e6, 1) AS queue_ms, round(median(device_ns) / 1e6, 1) AS device_ms, round(avg(others), 1) AS requests_of_others
	FROM classes GROUP BY class ORDER BY class"

for class in C1 C2 C3; do
	span=$(value server "WITH $pages SELECT span_id FROM classes WHERE class LIKE '$class%' ORDER BY dur_ns DESC
		LIMIT 1 OFFSET (SELECT count(*) // 20 FROM classes WHERE class LIKE '$class%')")
	heading "A slow page of class $class"
	[[ $span =~ ^[0-9a-f]{16}$ ]] || { echo "no page was of this class" && continue; }
	"$fathom" why "$sessions/server.fathom" --span "$span"
done

heading "Requests by name"
table server "
	SELECT service, name, kind, spans, errors, round(p50_ns / 1e6, 2) AS p50_ms, round(p99_ns / 1e6, 1) AS p99_ms, calls, device_bytes
	FROM by_span_name ORDER BY total_ns DESC LIMIT 16"

heading "Where the slow ones spend more time"
table server "
	SELECT service, name, layer, usual_ns, slow_ns, round(share, 2) AS share FROM slow_spans
	WHERE share > 0.1 AND slow_ns > 1000000 ORDER BY service, name, more_ns DESC"

heading "Findings"
findings server

# What fathom did not write.
heading "Against the log of nginx: requests, and milliseconds at percentiles of GET /random"
log=$work/log/access
echo "access log: $(wc -l <"$log") requests; spans: $(value server "SELECT count(*) FROM spans WHERE service = 'nginx' AND kind = 'server'")"
echo "passed to PHP: $(awk '$5 != "-"' "$log" | wc -l); spans of PHP: $(value server "SELECT count(*) FROM spans WHERE service LIKE 'php-fpm%' AND kind = 'server'")"
echo "PHP below a request of nginx: $(value server "SELECT count(*) FROM spans AS s JOIN spans AS p ON p.span_id = s.parent_span_id JOIN spans AS g ON g.span_id = p.parent_span_id
	WHERE s.service LIKE 'php-fpm%' AND s.kind = 'server' AND g.service = 'nginx' AND g.kind = 'server'")"
# at COLUMN: of the log.
at() {
	awk -v c="$1" '$2 == "/random" { print $c * 1000 }' "$log" | sort -n | awk '{ v[NR] = $1 } END {
		split("0.5 0.9 0.99 1", q, " "); for (i = 1; i <= 4; i++) { n = int(q[i] * NR + 0.999); printf "%s%.0f", (i > 1 ? " " : ""), v[n] } print "" }'
}
# of SPANS: the same of spans.
of() {
	value server "SELECT format('{:.0f} {:.0f} {:.0f} {:.0f}', quantile_disc(dur_ns, 0.5) / 1e6, quantile_disc(dur_ns, 0.9) / 1e6, quantile_disc(dur_ns, 0.99) / 1e6,
		max(dur_ns) / 1e6) FROM spans WHERE name = 'GET /random' AND $1"
}
echo "50 90 99 100 %: request_time $(at 4); spans $(of "service = 'nginx' AND kind = 'server'")"
echo "50 90 99 100 %: upstream_response_time $(at 5); spans of nginx to PHP $(of "service = 'nginx' AND kind = 'client'"); spans of PHP $(of "service LIKE 'php-fpm%'")"
awk '/^ +(50|90|99|100)%/ { printf "%s%s", (n++ ? " " : "ab, 50 90 99 100 %: "), $2 } END { print "" }' "$work/ab.random"

heading "Against MariaDB's counters and its slow log"
while read -r name count; do
	verb=${name#Com_}
	echo "$name $count; spans of mariadbd: $(value server "SELECT count(*) FROM spans WHERE service = 'mariadbd' AND name LIKE '${verb^^} %'")"
done <"$work/status"
echo "slow queries (50 ms or more) $(grep -c '^# Query_time' "$work/log/slow-queries" || true); spans of them: $(
	value server "SELECT count(*) FROM spans WHERE service = 'mariadbd' AND dur_ns >= 50000000")"

heading "Against the pids of the backup"
sort "$work/backup.pids" | paste -sd, >"$work/pids"
table server "
	SELECT comm, count(DISTINCT pid) AS processes, pid IN ($(cat "$work/pids")) AS of_backup, count(*) AS requests, (sum(bytes) / 1048576)::INTEGER AS mib
	FROM block WHERE op = 'read' AND rid IS NULL GROUP BY ALL ORDER BY mib DESC LIMIT 4"
where_sessions_are
