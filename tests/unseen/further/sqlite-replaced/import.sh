for day in 2 3 4; do
  sleep 1
  rm -f rates.new
  sqlite3 rates.new "create table rate (code text primary key, value real); with recursive n(i) as (select 0 union all select i+1 from n where i < 40000) insert into rate select 'c'||i, i*0.5+$day from n"
  mv rates.new rates.db
done
