sqlite3 shop.db <<'S'
pragma journal_mode=off; pragma synchronous=off; pragma cache_size=-200000;
create table customer(id integer primary key, name text, address text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
insert into customer select i, 'customer ' || i, hex(randomblob(100)) from n;
create table sale(id integer primary key, customer int, cents int);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 700000)
insert into sale select i, 1 + (i * 2654435761) % 200000, i % 5000 from n;
S
