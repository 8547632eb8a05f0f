sqlite3 tickets.db "select mail, id, length(body) from ticket not indexed order by mail, id" | sha256sum
