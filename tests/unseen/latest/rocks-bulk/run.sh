ldb --db=$PWD/db --create_if_missing --disable_wal --bulk_load load < pairs || exit 1
ldb --db=$PWD/db scan --max_keys=100000 | tail -n 1
