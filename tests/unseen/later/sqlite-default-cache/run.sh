exec sqlite3 shop.db 'select sum(s.cents), max(c.address) from sale s cross join customer c on c.id = s.customer'
