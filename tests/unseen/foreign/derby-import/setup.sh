cat > create.sql <<'S'
connect 'jdbc:derby:shop;create=true';
create table orders (id int primary key, customer varchar(40), total double);
S
CLASSPATH=/usr/share/java/derby.jar:/usr/share/java/derbytools.jar:/usr/share/java/derbyshared.jar java org.apache.derby.tools.ij create.sql
sh data.sh
