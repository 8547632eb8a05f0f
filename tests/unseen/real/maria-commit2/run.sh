mariadbd --no-defaults --user=mysql --datadir=$PWD/data --socket=$PWD/m.sock --pid-file=$PWD/m.pid --skip-networking --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=2 > server.log 2>&1 &
P=$!
until mariadb --no-defaults -S m.sock -e 'select 1' >/dev/null 2>&1; do sleep 0.2; done
(echo 'create database d; use d; create table event(id bigint auto_increment primary key, kind int, note varchar(100)) engine=innodb;'
 i=0; while [ $i -lt 20000 ]; do echo "insert into event(kind, note) values ($i, 'something happened');"; i=$((i+1)); done) | mariadb --no-defaults -S m.sock
rc=$?
kill -TERM $P; wait $P
exit $rc
