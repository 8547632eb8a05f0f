#!/usr/bin/env bash
# The three servers of the example, as an unprivileged user, until TERM; then each ends by its pid.
#
#   servers.sh DIRECTORY PHP-FPM
set -euo pipefail
work=$1
servers=()
end() {
	kill -QUIT "${servers[@]:1}" 2>/dev/null || true
	kill -TERM "${servers[0]}" 2>/dev/null || true
	wait
	exit 0
}
trap end TERM
mariadbd --defaults-file="$work/my.cnf" >"$work/log/mariadbd.out" 2>&1 &
servers+=($!)
"$2" --nodaemonize --fpm-config "$work/fpm.conf" -c "$work/php.ini" >"$work/log/php-fpm.out" 2>&1 &
servers+=($!)
nginx -c "$work/nginx.conf" -e "$work/log/nginx.errors" >"$work/log/nginx.out" 2>&1 &
servers+=($!)
echo $$ >"$work/run/servers.pid"
while :; do wait "${servers[@]}" || true; done
