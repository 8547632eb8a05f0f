mdb_load -f dump.txt db && mdb_stat db
