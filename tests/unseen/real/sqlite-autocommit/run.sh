(echo 'create table event(id integer primary key, note text);'
 i=0; while [ $i -lt 400 ]; do echo "insert into event(note) values ('something happened $i');"; i=$((i+1)); done) | sqlite3 app.db
