# A database with a log ahead (WAL) and rows put together in transactions.
# needs: sqlite3
case $1 in
setup) ;;
run)
    sqlite3 a.db 'PRAGMA journal_mode=WAL; CREATE TABLE t(a, b);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) INSERT INTO t SELECT i, hex(randomblob(20)) FROM n;
        CREATE INDEX x ON t(b); SELECT count(*), max(b) FROM t;'
    ;;
esac
