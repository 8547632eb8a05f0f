# all tickets, by the address of the customer
sqlite3 tickets.db "select mail, id, length(body) from ticket indexed by ticket_mail order by mail" | sha256sum
