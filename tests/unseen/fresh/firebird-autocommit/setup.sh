cat > new.sql <<S
create database '$PWD/shop.fdb' page_size 8192;
create table orders (id integer primary key, customer varchar(40), total double precision);
commit;
S
isql-fb -q -i new.sql
# what a shop exported overnight: the client that wrote it commits each order
awk 'BEGIN { for (n = 1; n <= 3000; n++) printf "insert into orders values (%d, '"'customer %d'"', %d.50);\ncommit;\n", n, n * 7919 % 500, n % 90 }' > orders.sql
