B=/usr/lib/postgresql/15/bin
pg() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
export PGHOST=$PWD PGPORT=5562 PGUSER=postgres PGDATABASE=postgres
setpriv --reuid=postgres --regid=postgres --clear-groups $B/postgres -D data > server.log 2>&1 &
P=$!
until pg $B/pg_isready -q; do sleep 0.1; done
pg $B/pg_dump -Fd -j 2 -Z 1 -f dump postgres
rc=$?
kill -INT $P; wait $P
exit $rc
