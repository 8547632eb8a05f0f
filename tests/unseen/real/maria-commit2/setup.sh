set -e
mkdir data; chown mysql:mysql . data
mariadb-install-db --no-defaults --user=mysql --datadir=$PWD/data --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve
