mariadbd --no-defaults --user=mysql --datadir=$PWD/data --socket=$PWD/m.sock --pid-file=$PWD/m.pid --skip-networking --innodb-buffer-pool-size=128M --innodb-flush-log-at-trx-commit=1 > server.log 2>&1 &
P=$!
until mariadb --no-defaults -S m.sock -e 'select 1' >/dev/null 2>&1; do sleep 0.2; done
mariadb --no-defaults -S m.sock -e "create database d; use d;
create table event(id bigint primary key, kind int, note varchar(100)) engine=innodb;
load data infile '$PWD/event.tsv' into table event;
select count(*), sum(kind) from event"
rc=$?
kill -TERM $P; wait $P
exit $rc
