exec sqlite3 -cmd 'PRAGMA cache_size=-200000' shop.db 'select sum(s.cents), max(c.address) from sale s cross join customer c on c.id = s.customer'
