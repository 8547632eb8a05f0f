sqlite3 rates.db "create table rate (code text primary key, value real); with recursive n(i) as (select 0 union all select i+1 from n where i < 40000) insert into rate select 'c'||i, i*0.5 from n"
