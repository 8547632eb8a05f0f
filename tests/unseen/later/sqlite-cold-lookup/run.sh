exec sqlite3 parts.db 'select count(*), sum(length(p.descr)) from wanted w cross join part p on p.serial = w.serial'
