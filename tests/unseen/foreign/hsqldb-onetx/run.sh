exec java -Xshare:auto -XX:TieredStopAtLevel=1 -cp /usr/share/java/hsqldb.jar:. Stock
