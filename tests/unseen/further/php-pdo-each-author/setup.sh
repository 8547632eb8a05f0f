mkdir db tmp
cat > my.cnf <<C
[mysqld]
datadir=$PWD/db
socket=$PWD/my.sock
pid-file=$PWD/my.pid
tmpdir=$PWD/tmp
skip-networking
user=root
innodb_buffer_pool_size=64M
innodb_log_file_size=16M
C
mariadb-install-db --defaults-file=$PWD/my.cnf --auth-root-authentication-method=normal > /dev/null 2>&1 || exit 1
