set -e
here=$PWD
pg() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
B=/usr/lib/postgresql/15/bin
mkdir data; chown postgres:postgres . data; chmod 700 data
pg $B/initdb -D data -A trust --no-sync -E UTF8 --locale=C
cat >> data/postgresql.conf <<C
listen_addresses = ''
unix_socket_directories = '$here'
port = 5562
max_connections = 10
max_wal_size = 2GB
C
pg $B/pg_ctl -D data -w -l setup.pg.log start
export PGHOST=$here PGPORT=5562 PGUSER=postgres PGDATABASE=postgres
pg $B/psql -qc "create table load(id bigint, a int, b text)"
seq 1 450000 | awk "{printf \"%d\\t%d\\tthe quick brown fox jumps over the lazy dog %d\\n\", \$1, \$1%977, \$1*7}" > in.tsv
chmod 644 in.tsv
pg $B/psql -qc "copy load from '$PWD/in.tsv'"
pg $B/psql -qc "create table load2 as select * from load"
pg $B/psql -qc "vacuum freeze"
rm in.tsv
pg $B/pg_ctl -D data -w -m fast stop
