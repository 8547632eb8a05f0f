# A database that makes a journal for each row, and removes it.
# needs: sqlite3
case $1 in
setup) sqlite3 a.db 'CREATE TABLE t(a);' ;;
run) for i in $(seq 40); do echo "INSERT INTO t VALUES($i);"; done | sqlite3 a.db ;;
esac
