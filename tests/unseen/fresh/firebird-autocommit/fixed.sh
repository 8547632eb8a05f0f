(grep -v '^commit' orders.sql; echo 'commit;') > once.sql
isql-fb -q -user SYSDBA -i once.sql $PWD/shop.fdb || exit 1
echo 'select count(*) from orders;' | isql-fb -q -user SYSDBA $PWD/shop.fdb | grep 3000
