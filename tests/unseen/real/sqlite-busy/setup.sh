sqlite3 app.db 'create table event(id integer primary key, who int, note text);'
