seq 1 250000 | awk '{ printf "%d,\"customer %d\",%d.5\n", $1, $1 * 7919 % 500, $1 % 90 }' > orders.csv
cat > load.sql <<'S'
connect 'jdbc:derby:shop';
call SYSCS_UTIL.SYSCS_IMPORT_TABLE(null, 'ORDERS', 'orders.csv', null, null, null, 0);
select count(*) from orders;
S
