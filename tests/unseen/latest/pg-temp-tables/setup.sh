set -e
here=$PWD
pg() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
B=/usr/lib/postgresql/15/bin
mkdir data; chown postgres:postgres . data; chmod 700 data
pg $B/initdb -D data -A trust --no-sync -E UTF8 --locale=C
cat >> data/postgresql.conf <<C
listen_addresses = ''
unix_socket_directories = '$here'
port = 5561
max_connections = 10
max_wal_size = 2GB
synchronous_commit = off
C
{
    n=0
    while [ $n -lt 1500 ]; do
        echo "begin;
create temp table basket(article int primary key, name text, amount int) on commit drop;
insert into basket select n, 'article ' || n, n % 7 from generate_series($n, $n + 20) n;
select sum(amount) from basket;
commit;"
        n=$((n + 1))
    done
} > requests.sql
chmod 644 requests.sql
