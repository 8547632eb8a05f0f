isql-fb -q -user SYSDBA -i orders.sql $PWD/shop.fdb || exit 1
echo 'select count(*) from orders;' | isql-fb -q -user SYSDBA $PWD/shop.fdb | grep 3000
