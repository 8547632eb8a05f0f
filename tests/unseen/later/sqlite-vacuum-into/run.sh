exec sqlite3 shop.db "delete from sale where id % 3 = 0" "vacuum into 'backup.db'"
