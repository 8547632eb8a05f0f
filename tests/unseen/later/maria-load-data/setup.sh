set -e
mkdir data; chown mysql:mysql . data
mariadb-install-db --no-defaults --user=mysql --datadir=$PWD/data --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve
seq 250000 | awk '{ printf "%d\t%d\tsomething happened to part %d\n", $1, $1 * 37 % 1009, $1 * 7919 % 65537 }' > event.tsv
chmod 644 event.tsv
