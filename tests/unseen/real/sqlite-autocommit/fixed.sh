(echo 'create table event(id integer primary key, note text); begin;'
 i=0; while [ $i -lt 400 ]; do echo "insert into event(note) values ('something happened $i');"; i=$((i+1)); done; echo 'commit;') | sqlite3 app.db
