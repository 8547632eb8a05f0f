sqlite3 parts.db <<'S'
pragma journal_mode=off; pragma synchronous=off; pragma cache_size=-200000;
create table part(id integer primary key, serial text, descr blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000)
insert into part select i, printf('%016x', (i * 2654435761) % 4294967296), randomblob(400) from n;
create index part_serial on part(serial);
create table wanted(serial text);
insert into wanted select serial from part where id % 25 = 5 order by random();
S
