set -e
here=$PWD
pg() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
B=/usr/lib/postgresql/15/bin
mkdir data; chown postgres:postgres . data; chmod 700 data
pg $B/initdb -D data -A trust --no-sync -E UTF8 --locale=C
cat >> data/postgresql.conf <<C
listen_addresses = ''
unix_socket_directories = '$here'
port = 5555
max_connections = 10
max_wal_size = 4GB
max_parallel_workers_per_gather = 0
shared_buffers = 32MB
C
pg $B/pg_ctl -D data -w -l setup.pg.log start
export PGHOST=$here PGPORT=5555 PGUSER=postgres PGDATABASE=postgres
pg $B/psql -q -c "create table reading(id bigint, sensor int, value float8, note text)" -c "insert into reading select i, i % 977, i * 0.25, repeat(chr(65 + i % 26), 60) from generate_series(1, 1500000) i" -c "vacuum (freeze, analyze) reading"
pg $B/pg_ctl -D data -w -m fast stop
